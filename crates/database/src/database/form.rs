//! Forms of configuration values that all databases share. Main item: [`URL_FORM`].

use serde_json::json;

use crate::written::Form;

/// The form of a server's address.
pub static URL_FORM: Form = Form {
    says: "address, as in `\"mysql://user@host:3306/database\"` or `\"postgres://user@host:5432/database\"`",
    schema: || json!({ "type": "string", "pattern": "://" }),
    example: "\"mysql://me@localhost:3306/d\"",
};
