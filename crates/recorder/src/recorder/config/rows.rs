//! Settings that several tables of the recorder's file share, and the forms of values.

use serde_json::json;

use crate::written::{Absent, Form, Kind, Setting, Span};

/// The form of the database's own settings.
pub static CONFIG: Form = Form {
    says: "table of names with text, numbers, `true` or `false`",
    schema: || json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } }),
    example: "{ a = 1 }",
};

/// The form of an address to listen on.
pub static ADDRESS: Form = Form {
    says: "address and port, as in `\"127.0.0.1:8086\"`",
    schema: || json!({ "type": "string", "pattern": ":[0-9]{1,5}$" }),
    example: "\"127.0.0.1:0\"",
};

/// Returns the setting of an address to listen on.
pub const fn listen(help: &'static str) -> Setting {
    Setting::new("listen", Kind::Own(&ADDRESS), Absent::Refused, help)
}

/// Certificate chain for TLS.
pub const CERTIFICATE: Setting = Setting::new(
    "certificate",
    Kind::Text,
    Absent::Means("no TLS"),
    "The file with the certificate chain for TLS, in PEM; `key` must be given too.",
);

/// Private key for TLS.
pub const KEY: Setting =
    Setting::new("key", Kind::Text, Absent::Means("no TLS"), "The file with the certificate's private key, in PEM.");

/// The authority that must have signed the certificates of clients.
pub const CLIENT_AUTHORITY: Setting = Setting::new(
    "client_authority",
    Kind::Text,
    Absent::Means("clients need no certificate"),
    "The file with the authority that must have signed each client's certificate.",
)
.only("TLS");

/// Whether other machines may connect without TLS.
pub const INSECURE: Setting = Setting::new(
    "insecure",
    Kind::Truth,
    Absent::Truth(false),
    "Whether other machines may connect without TLS, because something else protects the connection.",
);

/// Returns the setting of the most connections at a time.
pub const fn connections(most: i64, usual: i64) -> Setting {
    Setting::new("connections", Kind::Whole(1, most), Absent::Whole(usual), "Maximum number of connections at a time.")
}

/// Returns the setting of the most connections of one address.
pub const fn connections_per_address(absent: &'static str) -> Setting {
    Setting::new(
        "connections_per_address",
        Kind::Whole(1, 100_000),
        Absent::Means(absent),
        "Maximum number of connections from one address.",
    )
}

/// The default for connections of one address.
pub const HALF: &str = "half of `connections`; no limit for this machine's own";

/// How long a client may take for one request.
pub const PATIENCE: Setting = Setting::new(
    "patience",
    Kind::Duration(Span::Within(0.01, 3600.0)),
    Absent::Text("30s"),
    "Maximum time that a client may take for a whole request, batch or upload.",
);
