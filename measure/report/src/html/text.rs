//! Names come from foreign files: nothing of them may end an element, an attribute or a script.
use crate::printable_text::printable;
use hopscope_event::text::is_steering;
use std::fmt;

/// Text for element content and quoted attributes.
pub(crate) struct Text<'a>(pub &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c if is_steering(c) => f.write_str(&printable(c.encode_utf8(&mut [0; 4])))?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

/// A name for the data of the page, without what would be invisible there.
pub(crate) fn name(text: &str) -> String {
    printable(text)
}

/// JSON as the content of a `script` element of a data type: no `<` may stand in it, because
/// `</script` and `<!--` are looked for before JSON is.
pub(crate) fn json(value: &serde_json::Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_an_element_or_an_attribute() {
        let hostile = "</script><img src=x onerror=\"a('b')\">&\u{2028}\u{202e}\u{1b}[2J";
        let text = Text(hostile).to_string();
        assert!(
            !text.contains(['<', '>', '"', '\'', '\u{2028}', '\u{202e}', '\u{1b}']),
            "{text}"
        );
        assert!(text.starts_with("&lt;/script&gt;"));
        assert!(text.ends_with(r"&amp;\u{2028}\u{202e}\x1b[2J"));
    }

    #[test]
    fn json_cannot_end_its_script_and_reads_back_the_same() {
        let hostile = serde_json::json!({"a</script>": "<!-- <script> \u{2028} \" \\"});
        let text = json(&hostile);
        assert!(!text.contains('<'), "{text}");
        let back: serde_json::Value = serde_json::from_str(&text).expect("it is JSON still");
        assert_eq!(back, hostile);
    }
}
