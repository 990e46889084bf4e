//! `{{name}}` in the texts of a script.

/// What a call puts into the texts of its script.
pub(super) trait Values {
    /// The value of a name, or `None` when there is no such name: then the text stays as it is.
    fn value(&self, name: &str) -> Option<String>;
}

/// Expands the names in a plain text.
pub(super) fn expand(text: &str, values: &impl Values) -> String {
    replace(text, |name| values.value(name))
}

/// Expands the names in the text of a JSON value, whose strings they must be in, and puts it on one line.
pub(super) fn expand_json(text: &str, values: &impl Values) -> String {
    replace(&one_line(text), |name| values.value(name).map(|value| escape(&value)))
}

fn replace(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let found = from[2..].find("}}").and_then(|len| Some((len, value(&from[2..2 + len])?)));
        if let Some((len, value)) = found {
            out.push_str(&value);
            rest = &from[len + 4..];
        } else {
            // Only one brace is passed over: the next one may open a name.
            out.push('{');
            rest = &from[1..];
        }
    }
    out.push_str(rest);
    out
}

fn escape(value: &str) -> String {
    let quoted = serde_json::to_string(value).expect("a string always serializes");
    quoted[1..quoted.len() - 1].to_owned()
}

/// Drops the white space between the tokens: a script may be laid out for people, a line may not.
fn one_line(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut in_string, mut escaped) = (false, false);
    for c in json.chars() {
        if !in_string && c.is_ascii_whitespace() {
            continue;
        }
        if c == '"' && !escaped {
            in_string = !in_string;
        }
        escaped = in_string && c == '\\' && !escaped;
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl Values for Fixed {
        fn value(&self, name: &str) -> Option<String> {
            match name {
                "sid" => Some("abc".to_owned()),
                "prompt" => Some("say \"{{sid}}\"\n".to_owned()),
                _ => None,
            }
        }
    }

    #[test]
    fn known_names_are_expanded_once() {
        assert_eq!(expand("a {{sid}}{{sid}} b", &Fixed), "a abcabc b");
        assert_eq!(expand("{{prompt}}", &Fixed), "say \"{{sid}}\"\n");
    }

    #[test]
    fn everything_else_stays() {
        for text in ["{{other}}", "{{", "{ {sid} }", "{{sid", "}}"] {
            assert_eq!(expand(text, &Fixed), text);
        }
        assert_eq!(expand("{{{sid}}}", &Fixed), "{abc}");
        assert_eq!(expand("{{x {{sid}}", &Fixed), "{{x abc");
    }

    #[test]
    fn a_json_value_becomes_one_valid_line() {
        let pretty = "{\n  \"z\": \"a  \\\" b\",\n  \"a\": {\"p\": \"{{prompt}}\"}\n}";
        let line = expand_json(pretty, &Fixed);
        assert_eq!(line, r#"{"z":"a  \" b","a":{"p":"say \"{{sid}}\"\n"}}"#);
        serde_json::from_str::<serde_json::Value>(&line).unwrap();
    }
}
