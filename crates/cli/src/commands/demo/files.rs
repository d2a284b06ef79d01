//! The demo's project: a task, and a gate that needs nothing but a POSIX shell.

pub const PROMPT: &str = "PROMPT.md";
pub const GATE: &str = "test.sh";
/// What the agent writes.
pub const PROGRAM: &str = "roman.sh";

/// Every file with its text.
pub const ALL: [(&str, &str); 2] = [(PROMPT, PROMPT_TEXT), (GATE, GATE_TEXT)];

const PROMPT_TEXT: &str = "\
Write roman.sh: `sh roman.sh NUMBER` prints the number in Roman numerals.
`sh test.sh` must pass.

When it is done, print <promise>COMPLETE</promise> on a line of its own.
";

const GATE_TEXT: &str = r#"#!/bin/sh
# The gate: every number must come out right.
status=0
while read -r number want; do
    got=$(sh ./roman.sh "$number" 2>&1)
    if [ "$got" = "$want" ]; then
        echo "ok      $number is $got"
    else
        echo "NOT OK  $number is $want, not $got"
        status=1
    fi
done <<END
1 I
4 IV
9 IX
40 XL
1994 MCMXCIV
2026 MMXXVI
END
exit $status
"#;

/// The program with this table of values and letters.
pub fn program(table: &str) -> String {
    format!(
        r#"#!/bin/sh
# Prints a number in Roman numerals.
number=$1
roman=
for pair in {table}; do
    value=${{pair%%:*}}
    while [ "$number" -ge "$value" ]; do
        roman=$roman${{pair##*:}}
        number=$((number - value))
    done
done
echo "$roman"
"#
    )
}
