//! Schemas, checked by a validator that is none of ours, and the examples in the documentation.

use std::path::Path;

use boon::{Compiler, SchemaIndex, Schemas};
use loadline::cli::Described;
use loadline::commands::schema;
use serde_json::Value as Json;

/// A schema that was compiled; compiling checks it against the schema of schemas.
pub struct Checked {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Checked {
    /// A schema of the program.
    pub fn of(what: Described) -> Self {
        Checked::new(&schema::document(what))
    }

    /// A schema.
    pub fn new(schema: &Json) -> Self {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        let place = "https://loadline.invalid/schema.json";
        compiler.add_resource(place, schema.clone()).unwrap();
        let index = compiler.compile(place, &mut schemas).unwrap_or_else(|error| panic!("no schema: {error:#}"));
        Checked { schemas, index }
    }

    /// What is wrong with a document; none where it is valid.
    pub fn wrong(&self, document: &Json) -> Option<String> {
        self.schemas.validate(document, self.index).err().map(|error| format!("{error:#}"))
    }
}

/// A schema in which a field that is not described is wrong.
pub fn closed(schema: &Json) -> Json {
    let mut schema = schema.clone();
    for (_, definition) in schema["$defs"].as_object_mut().unwrap() {
        if definition.get("properties").or(definition.get("oneOf")).is_some() {
            definition["unevaluatedProperties"] = false.into();
        }
    }
    schema
}

/// A TOML file as JSON.
pub fn json_of(text: &str) -> Json {
    let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    serde_json::to_value(table).unwrap()
}

/// Every example of TOML in README.md and docs/*.md, with its place.
pub fn examples() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let mut found = Vec::new();
    for path in pages.chain([root.join("README.md")]) {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines().enumerate();
        while let Some((number, _)) = lines.find(|(_, line)| line.trim() == "```toml") {
            let block = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```");
            let block = block.collect::<Vec<_>>().join("\n");
            found.push((format!("{}:{}", path.display(), number + 1), block));
        }
    }
    found
}
