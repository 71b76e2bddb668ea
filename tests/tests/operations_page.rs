//! `docs/operations.md` says what each index is for, and each setting of a table.

use outbox_core::sql::{Migration, TableNames, mysql, pg, sqlite};

const PAGE: &str = include_str!("../../docs/operations.md");

fn names() -> TableNames {
    TableNames::default()
}

/// The text of all steps, and the words that follow any of these, without the prefix.
fn words_after(steps: &[Migration], before: &[&str]) -> Vec<String> {
    let text: String = steps.iter().map(|step| step.sql.as_str()).collect();
    let mut found = Vec::new();
    for before in before {
        for after in text.split(before).skip(1) {
            let name = after
                .split(['"', '`', ' ', '('])
                .find(|word| !word.is_empty());
            let name = name.unwrap_or_default();
            found.push(name.strip_prefix("outbox_").unwrap_or(name).to_owned());
        }
    }
    assert!(!found.is_empty(), "no {before:?} in the migrations");
    found
}

/// The page has these words, as code.
fn assert_named(words: &[String]) {
    for word in words {
        assert!(PAGE.contains(&format!("`{word}`")), "`{word}` is missing");
    }
}

#[test]
fn names_every_index() {
    let of_postgres = words_after(&pg::migrations(&names()), &["CREATE INDEX "]);
    let of_sqlite = words_after(&sqlite::migrations(&names()), &["CREATE INDEX "]);
    // Of MySQL's, `PRIMARY KEY` is no name.
    let of_mysql = words_after(&mysql::migrations(&names()), &["\n    KEY ", "UNIQUE KEY "]);
    for indexes in [of_postgres, of_sqlite, of_mysql] {
        assert_named(&indexes);
    }
}

#[test]
fn names_every_table() {
    for steps in [
        pg::migrations(&names()),
        mysql::migrations(&names()),
        sqlite::migrations(&names()),
    ] {
        let tables = words_after(&steps, &["CREATE TABLE IF NOT EXISTS ", "CREATE TABLE "]);
        let tables: Vec<String> = tables.into_iter().filter(|name| name != "IF").collect();
        assert_named(&tables);
    }
}

#[test]
fn tells_every_setting_of_the_table_of_events() {
    let text = &pg::migrations(&names())[0].sql;
    let settings = text
        .split(") WITH (")
        .nth(1)
        .and_then(|rest| rest.split(");").next());
    let settings: Vec<_> = settings
        .expect("settings")
        .lines()
        .filter_map(|line| line.trim().trim_end_matches(',').split_once(" = "))
        .collect();
    assert!(settings.len() > 5, "{settings:?}");
    for (name, value) in settings {
        let row = PAGE.lines().find(|line| {
            // A second name of a row leaves out what both begin with.
            let short = name.trim_start_matches("autovacuum_vacuum");
            line.starts_with("| `")
                && (line.contains(&format!("`{name}`")) || line.contains(&format!("`{short}`")))
        });
        let row = row.unwrap_or_else(|| panic!("`{name}` is missing"));
        assert!(row.contains(value), "{name} is {value}: {row}");
    }
}
