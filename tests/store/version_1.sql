-- A ledger of version 1 of the tables, with facts 1 to 4 of session s1, as SQLite dumps it.
PRAGMA application_id = 1095913521;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE journal (
        id INTEGER PRIMARY KEY,
        heads BLOB NOT NULL,    -- JSON: [[session, first sequence, number of facts], ...]
        facts BLOB NOT NULL,    -- the facts of all heads, one JSON object a line
        crc INTEGER NOT NULL    -- CRC-32 of heads, then facts
    );
CREATE TABLE segment (
        session TEXT NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        crc INTEGER NOT NULL,   -- CRC-32 of facts
        facts BLOB NOT NULL,    -- one JSON object a line
        PRIMARY KEY (session, first)
    );
INSERT INTO "segment" VALUES('s1',1,4,1959704998,X'7B2273657373696F6E4964223A227331222C2273657175656E6365223A317D0A7B2273657373696F6E4964223A227331222C2273657175656E6365223A327D0A7B2273657373696F6E4964223A227331222C2273657175656E6365223A337D0A7B2273657373696F6E4964223A227331222C2273657175656E6365223A347D');
CREATE TABLE session (
        id TEXT PRIMARY KEY,
        owner TEXT NOT NULL,
        workflow TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        active INTEGER NOT NULL,
        meta TEXT NOT NULL      -- JSON: all of the row
    ) WITHOUT ROWID;
INSERT INTO "session" VALUES('s1','ann','explore','2026-11-21T08:00:00Z',0,'{"id":"s1","epoch":"e1","owner":"ann","workflow":"explore","title":"Sales","created_at":"2026-11-21T07:00:00Z","updated_at":"2026-11-21T08:00:00Z","turn_count":0,"last_sequence":0,"active":false}');
CREATE INDEX session_by_owner ON session (owner, updated_at, id);
CREATE INDEX session_active ON session (id) WHERE active;
COMMIT;
