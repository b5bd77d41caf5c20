//! The transaction that is compared: the same statements on the same tables, in the form of each side.

use loadline::database::{self, Endpoint};
use loadline::trial::DatabaseSettings;

use crate::subject::Peer;

/// What it does, for the heading.
pub const DESCRIPTION: &str = "BEGIN, SELECT, UPDATE, INSERT, COMMIT";

/// For loadline.
pub const OURS: &str = "{ weight = 1, transaction = [ \
    { sql = \"SELECT n FROM account WHERE id = ?\", params = [ { uniform = [1, 100000] } ] }, \
    { sql = \"UPDATE account SET n = n + 1 WHERE id = ?\", params = [ { uniform = [1, 100000] } ] }, \
    { sql = \"INSERT INTO history (account, n) VALUES (?, ?)\", params = [ { uniform = [1, 100000] }, { uniform = [1, 1000] } ] } ] }";

/// Name of the operation that loadline counts them by.
pub const OPERATION: &str = "statement-1";

/// For sysbench.
pub const LUA_FILE: &str = "transaction.lua";
pub const LUA: &str = r#"
function thread_init()
   con = sysbench.sql.driver():connect()
   local INT = sysbench.sql.type.INT
   local function prepared(sql, count)
      local statement, params = con:prepare(sql), {}
      for i = 1, count do params[i] = statement:bind_create(INT) end
      statement:bind_param(unpack(params))
      return statement, params
   end
   choose, choose_params = prepared("SELECT n FROM account WHERE id = ?", 1)
   change, change_params = prepared("UPDATE account SET n = n + 1 WHERE id = ?", 1)
   add, add_params = prepared("INSERT INTO history (account, n) VALUES (?, ?)", 2)
end

function event()
   con:query("BEGIN")
   choose_params[1]:set(sysbench.rand.uniform(1, 100000))
   choose:execute()
   change_params[1]:set(sysbench.rand.uniform(1, 100000))
   change:execute()
   add_params[1]:set(sysbench.rand.uniform(1, 100000))
   add_params[2]:set(sysbench.rand.uniform(1, 1000))
   add:execute()
   con:query("COMMIT")
end
"#;

/// For pgbench.
pub const SQL_FILE: &str = "transaction.sql";
pub const SQL: &str = "\\set chosen random(1, 100000)\n\\set changed random(1, 100000)\n\\set added random(1, 100000)\n\
    \\set n random(1, 1000)\nBEGIN;\nSELECT n FROM account WHERE id = :chosen;\n\
    UPDATE account SET n = n + 1 WHERE id = :changed;\nINSERT INTO history (account, n) VALUES (:added, :n);\nCOMMIT;\n";

/// Makes and fills the tables.
pub fn make_tables(peer: Peer, endpoint: &Endpoint) {
    let (name, number, rows) = match peer {
        Peer::Sysbench => ("mariadb", "BIGINT AUTO_INCREMENT", "SELECT seq, 0 FROM seq_1_to_100000"),
        Peer::Pgbench => ("postgres", "BIGSERIAL", "SELECT id, 0 FROM generate_series(1, 100000) AS id"),
    };
    let entry = database::find(name).expect("both are in the registry");
    let database =
        entry.open_sql(&DatabaseSettings::default(), Some(endpoint)).expect("the settings are the default ones");
    let mut session = database.connect().expect("the server has just been started");
    for sql in [
        "CREATE TABLE account (id INT PRIMARY KEY, n INT NOT NULL)".to_owned(),
        format!("CREATE TABLE history (id {number} PRIMARY KEY, account INT NOT NULL, n INT NOT NULL)"),
        format!("INSERT INTO account {rows}"),
    ] {
        session.run(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}
