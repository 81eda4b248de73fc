//! The frame that all charts share: two axes with round numbers at their ticks, as inline SVG.
use std::fmt::Write;

pub(crate) const WIDTH: f64 = 640.0;
pub(crate) const HEIGHT: f64 = 190.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 24.0;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    pub low: f64,
    pub high: f64,
    pub log: bool,
}

impl Axis {
    /// From 0; a flat line gets room above it.
    pub(crate) fn linear(high: f64) -> Axis {
        Axis {
            low: 0.0,
            high: if high > 0.0 { high * 1.05 } else { 1.0 },
            log: false,
        }
    }

    /// Both ends above 0, at least a factor of 2 apart.
    pub(crate) fn log(low: f64, high: f64) -> Axis {
        let low = low.max(1e-3);
        let high = high.max(low);
        if high / low < 2.0 {
            Axis {
                low: low / 1.5,
                high: high * 1.5,
                log: true,
            }
        } else {
            Axis {
                low,
                high,
                log: true,
            }
        }
    }

    /// 0 at the low end, 1 at the high one; what lies outside is put on the nearer end.
    fn part(&self, value: f64) -> f64 {
        let part = if self.log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        part.clamp(0.0, 1.0)
    }

    /// Round numbers: 1, 2 and 5 times powers of ten, at most `most` of them.
    pub(crate) fn ticks(&self, most: usize) -> Vec<f64> {
        let sets: &[&[f64]] = &[&[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
        let inside = |v: &f64| *v >= self.low * 0.9999 && *v <= self.high * 1.0001;
        if !self.log {
            let rough = (self.high - self.low) / most as f64;
            let unit = 10f64.powf(rough.log10().floor());
            let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * unit);
            let step = step
                .into_iter()
                .find(|s| *s >= rough)
                .unwrap_or(unit * 10.0);
            let first = (self.low / step).ceil() as i64;
            return (first..first + most as i64 + 1)
                .map(|n| n as f64 * step)
                .filter(inside)
                .collect();
        }
        let (from, to) = (
            self.low.log10().floor() as i32,
            self.high.log10().ceil() as i32,
        );
        let of = |set: &[f64], every: i32| -> Vec<f64> {
            let decades = (from..=to).filter(|d| d.rem_euclid(every) == 0);
            let all = decades.flat_map(|d| set.iter().map(move |m| m * 10f64.powi(d)));
            all.filter(inside).collect()
        };
        let choices = sets.iter().map(|set| of(set, 1));
        let sparse = (2..20).map(|every| of(&[1.0], every));
        choices
            .chain(sparse)
            .find(|t| t.len() <= most)
            .unwrap_or_default()
    }
}

pub(crate) struct Plot {
    pub x: Axis,
    pub y: Axis,
    svg: String,
    /// Where marks stand, so that their words do not lie on each other.
    marks: Vec<f64>,
}

impl Plot {
    /// `title` and the words at the ticks are ours, never a name from elsewhere.
    pub(crate) fn new(
        title: &str,
        (x, x_word): (Axis, &dyn Fn(f64) -> String),
        (y, y_word): (Axis, &dyn Fn(f64) -> String),
    ) -> Plot {
        let mut plot = Plot {
            x,
            y,
            svg: String::new(),
            marks: Vec::new(),
        };
        plot.add(format_args!(
            "<svg class=chart viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=img aria-label=\"{title}\">\
             <text class=title x={LEFT} y=13>{title}</text>"
        ));
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for value in y.ticks(5) {
            let at = plot.y(value);
            plot.add(format_args!(
                "<path class=grid d=\"M{LEFT} {at:.1}H{right}\"/><text class=tick x={} y={:.1} \
                 text-anchor=end>{}</text>",
                LEFT - 6.0,
                at + 3.5,
                y_word(value)
            ));
        }
        for value in x.ticks(8) {
            let at = plot.x(value);
            plot.add(format_args!(
                "<path class=grid d=\"M{at:.1} {TOP}V{bottom}\"/><text class=tick x={at:.1} y={} \
                 text-anchor=middle>{}</text>",
                bottom + 15.0,
                x_word(value)
            ));
        }
        plot
    }

    fn add(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.svg.write_fmt(text);
    }

    pub(crate) fn x(&self, value: f64) -> f64 {
        LEFT + self.x.part(value) * (WIDTH - LEFT - RIGHT)
    }

    pub(crate) fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.part(value) * (HEIGHT - TOP - BOTTOM)
    }

    /// From the bottom up to `value`.
    pub(crate) fn bar(&mut self, class: &str, from: f64, to: f64, value: f64) {
        let (left, right, top) = (self.x(from), self.x(to), self.y(value));
        let width = (right - left - 0.6).max(0.8);
        let height = HEIGHT - BOTTOM - top;
        self.add(format_args!(
            "<rect class={class} x={left:.1} y={top:.1} width={width:.1} height={height:.1} />"
        ));
    }

    /// Broken where there is nothing.
    pub(crate) fn line(&mut self, class: &str, points: impl Iterator<Item = (f64, Option<f64>)>) {
        let mut path = String::new();
        let mut pen = 'M';
        for (x, y) in points {
            let Some(y) = y else {
                pen = 'M';
                continue;
            };
            let _ = write!(path, "{pen}{:.1} {:.1}", self.x(x), self.y(y));
            // A point without neighbours is to be seen too.
            if pen == 'M' {
                path.push_str("h.8");
            }
            pen = 'L';
        }
        self.add(format_args!("<path class=\"line {class}\" d=\"{path}\"/>"));
    }

    /// A marked place on the x axis.
    pub(crate) fn mark(&mut self, value: f64, word: &str) {
        let at = self.x(value);
        let near = self
            .marks
            .iter()
            .filter(|other| (at - **other).abs() < 34.0)
            .count();
        self.marks.push(at);
        let (anchor, beside) = if at > WIDTH - 60.0 {
            ("end", -3.0)
        } else {
            ("start", 3.0)
        };
        let bottom = HEIGHT - BOTTOM;
        self.add(format_args!(
            "<path class=mark d=\"M{at:.1} {TOP}V{bottom}\"/><text class=marked x={:.1} y={} \
             text-anchor={anchor}>{word}</text>",
            at + beside,
            TOP + 9.0 + 12.0 * near as f64
        ));
    }

    /// Names of the lines, to the right of the title.
    pub(crate) fn legend(&mut self, entries: &[(&str, &str)]) {
        let mut x = WIDTH - RIGHT;
        for (class, word) in entries.iter().rev() {
            x -= word.len() as f64 * 6.2 + 26.0;
            self.add(format_args!(
                "<path class=\"line {class}\" d=\"M{x:.0} 9h14\"/><text class=tick x={:.0} y=13>{word}</text>",
                x + 18.0
            ));
        }
    }

    pub(crate) fn finish(mut self) -> String {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        self.add(format_args!(
            "<path class=axis d=\"M{LEFT} {TOP}V{bottom}H{right}\"/></svg>\n"
        ));
        self.svg
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let near = |a: Vec<f64>, b: &[f64]| {
            let same = a
                .iter()
                .zip(b)
                .all(|(a, b)| (a / b.max(1e-9) - 1.0).abs() < 1e-6 || a == b);
            assert!(a.len() == b.len() && same, "{a:?}");
        };
        near(Axis::linear(1000.0).ticks(5), &[0.0, 500.0, 1000.0]);
        near(
            Axis::log(900.0, 2.0e6).ticks(8),
            &[1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6],
        );
        near(Axis::log(1.0, 40.0).ticks(8), &[1.0, 2.0, 5.0, 10.0, 20.0]);
        for (low, high) in [(1.0, 1.0), (1.0, 1e15), (5.0, 5.1), (0.0, 0.0)] {
            let ticks = Axis::log(low, high).ticks(8);
            assert!((1..=8).contains(&ticks.len()), "{low}..{high}: {ticks:?}");
        }
    }

    #[test]
    fn nothing_is_drawn_outside() {
        let word = |v: f64| v.to_string();
        let plot = Plot::new(
            "t",
            (Axis::linear(10.0), &word),
            (Axis::log(1.0, 100.0), &word),
        );
        for value in [-5.0, 0.0, 3.0, 1e9] {
            assert!((LEFT..=WIDTH - RIGHT).contains(&plot.x(value)));
            assert!((TOP..=HEIGHT - BOTTOM).contains(&plot.y(value)));
        }
    }
}
