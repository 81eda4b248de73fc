//! What a key does. No terminal here, so that each is tried in a test.
use super::by::By;
use super::table::RowChoice;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What is asked of the one who holds terminal and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Nothing,
    Quit,
    Save,
}

#[derive(Debug, Clone)]
pub struct Keys {
    pub choice: RowChoice,
    pub paused: bool,
    /// A filter is being typed.
    pub typing: bool,
    pub first_row: usize,
}

impl Keys {
    pub fn new(by: By) -> Keys {
        Keys {
            choice: RowChoice {
                by,
                filter: String::new(),
                whole: false,
            },
            paused: false,
            typing: false,
            first_row: 0,
        }
    }

    pub fn press(&mut self, key: KeyEvent) -> Act {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        if ctrl && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Act::Quit;
        }
        if self.typing {
            self.type_filter(key.code)
        } else {
            return self.command(key.code);
        }
        Act::Nothing
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char(c) => self.choice.filter.push(c),
            KeyCode::Backspace => drop(self.choice.filter.pop()),
            KeyCode::Esc => {
                self.choice.filter.clear();
                self.typing = false;
            }
            KeyCode::Enter => self.typing = false,
            _ => {}
        }
        self.first_row = 0;
    }

    fn command(&mut self, code: KeyCode) -> Act {
        match code {
            KeyCode::Char('q') => return Act::Quit,
            KeyCode::Char('s') => return Act::Save,
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Esc => self.choice.filter.clear(),
            KeyCode::Char('a') => self.choice.whole = !self.choice.whole,
            KeyCode::Char('>') | KeyCode::Right => self.turn(1),
            KeyCode::Char('<') | KeyCode::Left => self.turn(By::ALL.len() - 1),
            KeyCode::Down | KeyCode::Char('j') => self.first_row += 1,
            KeyCode::Up | KeyCode::Char('k') => self.first_row = self.first_row.saturating_sub(1),
            KeyCode::PageDown => self.first_row += 20,
            KeyCode::PageUp => self.first_row = self.first_row.saturating_sub(20),
            KeyCode::Home => self.first_row = 0,
            KeyCode::Char(c) => {
                let places = [
                    ('h', By::Share),
                    ('c', By::Calls),
                    ('5', By::P50),
                    ('9', By::P99),
                    ('m', By::Max),
                    ('n', By::Name),
                ];
                if let Some((_, by)) = places.iter().find(|(key, _)| *key == c) {
                    self.choice.by = *by;
                }
            }
            _ => {}
        }
        Act::Nothing
    }

    fn turn(&mut self, by: usize) {
        let at = By::ALL
            .iter()
            .position(|b| *b == self.choice.by)
            .unwrap_or(0);
        self.choice.by = By::ALL[(at + by) % By::ALL.len()];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(keys: &mut Keys, text: &str) -> Act {
        let code = |c| match c {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            c => KeyCode::Char(c),
        };
        let events = text
            .chars()
            .map(|c| KeyEvent::new(code(c), KeyModifiers::NONE));
        let acts: Vec<Act> = events.map(|event| keys.press(event)).collect();
        acts.last().copied().unwrap_or(Act::Nothing)
    }

    #[test]
    fn letters_are_commands_until_a_filter_is_typed() {
        let mut keys = Keys::new(By::Share);
        assert_eq!(press(&mut keys, "/sq"), Act::Nothing);
        assert_eq!((keys.choice.filter.as_str(), keys.typing), ("sq", true));
        assert_eq!(press(&mut keys, "\ns"), Act::Save);
        assert_eq!(keys.choice.filter, "sq");
        assert_eq!(press(&mut keys, "\u{1b}q"), Act::Quit);
        assert_eq!(keys.choice.filter, "");
    }

    #[test]
    fn control_c_ends_even_while_typing() {
        let mut keys = Keys::new(By::Share);
        press(&mut keys, "/ab");
        let event = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(keys.press(event), Act::Quit);
    }

    #[test]
    fn the_order_goes_round() {
        let mut keys = Keys::new(By::Share);
        press(&mut keys, "<");
        assert_eq!(keys.choice.by, By::Name);
        press(&mut keys, ">>");
        assert_eq!(keys.choice.by, By::Calls);
        press(&mut keys, "m ");
        assert_eq!((keys.choice.by, keys.paused), (By::Max, true));
    }
}
