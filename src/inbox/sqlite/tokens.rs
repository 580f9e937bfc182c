//! Tokens as they are kept.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::errors::unavailable;
use super::rows::{self, moment, prepare, wrong};
use super::session::Session;
use super::{InboxError, Token};
use crate::inbox::{OPERATOR_TOKENS_KEPT, SESSIONS_MAX, Scope, TOKENS_MAX, TokenKind, WORKSPACE_TOKENS_MAX};

/// Links and sessions that have been over for so long are forgotten; where there is no room for another, at once.
const OVER_KEPT: SignedDuration = SignedDuration::from_hours(24);

const ADMIN: i64 = 1;
const READ: i64 = 2;
const ACKNOWLEDGE: i64 = 4;

/// What [`token`] reads, of `token t`. One is revoked with the first that it was made from.
const TOKEN: &str =
    "t.id, t.kind, t.hash, t.label, t.role, t.workspace, t.name, t.flags, t.parent, t.created_at, t.expires_at,
                     coalesce(t.revoked_at, (
                         WITH RECURSIVE above (parent, revoked_at) AS (
                             SELECT a.parent, a.revoked_at FROM token a WHERE a.id = t.parent
                             UNION ALL SELECT b.parent, b.revoked_at FROM token b JOIN above ON b.id = above.parent)
                         SELECT min(revoked_at) FROM above)),
                     t.used_at";

fn token(row: &Row<'_>) -> rusqlite::Result<Token> {
    let at = |column| row.get::<_, Option<i64>>(column).map(|at| at.map(moment));
    Ok(Token {
        id: row.get(0)?,
        kind: TokenKind::parse(row.get_ref(1)?.as_str()?).ok_or_else(|| wrong(1))?,
        hash: row.get(2)?,
        label: row.get(3)?,
        scope: scope(row)?,
        parent: row.get(8)?,
        created_at: moment(row.get(9)?),
        expires_at: at(10)?,
        revoked_at: at(11)?,
        used_at: at(12)?,
    })
}

fn scope(row: &Row<'_>) -> rusqlite::Result<Scope> {
    let flags: i64 = row.get(7)?;
    let has = |flag| flags & flag != 0;
    match row.get_ref(4)?.as_str()? {
        "operator" => Ok(Scope::Operator),
        "member" => Ok(Scope::Member { workspace: rows::name(row, 5)?, member: row.get(6)?, is_admin: has(ADMIN) }),
        "agent" => Ok(Scope::Agent {
            workspace: rows::name(row, 5)?,
            consumer: rows::name(row, 6)?,
            may_read: has(READ),
            may_ack: has(ACKNOWLEDGE),
        }),
        _ => Err(wrong(4)),
    }
}

/// Role, workspace, name and flags.
fn columns(scope: &Scope) -> (&'static str, Option<&str>, Option<&str>, i64) {
    let flag = |is, flag| if is { flag } else { 0 };
    match scope {
        Scope::Operator => ("operator", None, None, 0),
        Scope::Member { workspace, member, is_admin } => {
            ("member", Some(workspace.as_str()), Some(member), flag(*is_admin, ADMIN))
        }
        Scope::Agent { workspace, consumer, may_read, may_ack } => {
            let flags = flag(*may_read, READ) | flag(*may_ack, ACKNOWLEDGE);
            ("agent", Some(workspace.as_str()), Some(consumer.as_str()), flags)
        }
    }
}

/// A token as it may be at best, by the one that it is made from: it does not outlive it. One that is made from what was revoked
/// or is forgotten, as only what is over is, is no good from the beginning.
fn bounded(connection: &Connection, token: &Token) -> Result<Token, InboxError> {
    let Some(parent) = token.parent else { return Ok(token.clone()) };
    let parent = by_id(connection, parent)?;
    let revoked_at = parent.as_ref().map_or(Some(token.created_at), |parent| parent.revoked_at);
    let end = parent.and_then(|parent| parent.expires_at);
    Ok(Token {
        expires_at: token.expires_at.into_iter().chain(end).min(),
        revoked_at: token.revoked_at.or(revoked_at),
        ..token.clone()
    })
}

/// Keeps one, [as it may be at best](bounded); returns its number.
pub(super) fn add(session: &Session, token: &Token) -> Result<i64, InboxError> {
    let connection = session.connection;
    let token = &bounded(connection, token)?;
    if token.kind == TokenKind::Session {
        end_oldest_sessions(connection, token)?;
    }
    make_room(connection, token)?;
    let (role, workspace, name, flags) = columns(&token.scope);
    let at = |at: Option<Timestamp>| at.map(Timestamp::as_millisecond);
    let sql = "INSERT INTO token (kind, hash, label, role, workspace, name, flags, parent, created_at, expires_at,
                                  revoked_at, used_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    let values = params![
        token.kind.as_str(),
        token.hash,
        token.label,
        role,
        workspace,
        name,
        flags,
        token.parent,
        token.created_at.as_millisecond(),
        at(token.expires_at),
        at(token.revoked_at),
        at(token.used_at),
    ];
    prepare(connection, sql)?.execute(values).map_err(unavailable)?;
    Ok(connection.last_insert_rowid())
}

/// Refuses what there is no room for: a workspace has its share, and all of them together leave some to the operator. What is over
/// makes room at once.
fn make_room(connection: &Connection, token: &Token) -> Result<(), InboxError> {
    let (_, workspace, ..) = columns(&token.scope);
    let all = if workspace.is_some() { TOKENS_MAX - OPERATOR_TOKENS_KEPT } else { TOKENS_MAX };
    for (of, most) in [workspace.map(|of| (Some(of), WORKSPACE_TOKENS_MAX)), Some((None, all))].into_iter().flatten() {
        if count(connection, of)? >= most {
            forget_over(connection, of, true, token.created_at.as_millisecond() + 1)?;
        }
        if count(connection, of)? >= most {
            let whose = of.map_or_else(|| "there are".to_owned(), |of| format!("workspace {of} has"));
            let message = format!("{whose} {most} tokens, links and sessions, which is the most: revoke some of them");
            return Err(InboxError::Unavailable(message));
        }
    }
    Ok(())
}

/// How many a workspace has, or all together.
fn count(connection: &Connection, workspace: Option<&str>) -> Result<u32, InboxError> {
    let sql = "SELECT count(*) FROM token WHERE ?1 IS NULL OR workspace = ?1";
    prepare(connection, sql)?.query_row([workspace], |row| row.get(0)).map_err(unavailable)
}

/// Ends the oldest sessions of a token and scope that has as many as it may, so that there is room for this one.
fn end_oldest_sessions(connection: &Connection, new: &Token) -> Result<(), InboxError> {
    let (role, workspace, name, _) = columns(&new.scope);
    let sql = "SELECT id FROM token
               WHERE parent = ?1 AND kind = 'session' AND role = ?2 AND workspace IS ?3 AND name IS ?4
                   AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?5)
               ORDER BY id DESC LIMIT -1 OFFSET ?6";
    let now = new.created_at.as_millisecond();
    let mut statement = prepare(connection, sql)?;
    let rows = statement.query_map(params![new.parent, role, workspace, name, now, SESSIONS_MAX - 1], |row| row.get(0));
    let ids: Vec<i64> = rows.and_then(Iterator::collect).map_err(unavailable)?;
    ids.into_iter().try_for_each(|id| revoke_with_all(connection, id, new.created_at))
}

/// The token of a hash.
pub(super) fn find(connection: &Connection, hash: &[u8; 32]) -> Result<Option<Token>, InboxError> {
    let select = format!("SELECT {TOKEN} FROM token t WHERE t.hash = ?1");
    prepare(connection, &select)?.query_row([hash.as_slice()], token).optional().map_err(unavailable)
}

fn by_id(connection: &Connection, id: i64) -> Result<Option<Token>, InboxError> {
    let select = format!("SELECT {TOKEN} FROM token t WHERE t.id = ?1");
    prepare(connection, &select)?.query_row([id], token).optional().map_err(unavailable)
}

/// Every bearer token, and what else is good.
pub(super) fn all(connection: &Connection, now: Timestamp) -> Result<Vec<Token>, InboxError> {
    let select = format!("SELECT {TOKEN} FROM token t ORDER BY t.id");
    let mut statement = prepare(connection, &select)?;
    let found = statement.query_map([], token).map_err(unavailable)?;
    let is_listed = |token: &Token| token.kind == TokenKind::Bearer || token.is_good(now);
    found.filter(|token| token.as_ref().map_or(true, is_listed)).collect::<Result<_, _>>().map_err(unavailable)
}

/// Revokes one and all that were made from it.
pub(super) fn revoke(session: &Session, id: i64, now: Timestamp) -> Result<bool, InboxError> {
    let connection = session.connection;
    let was_good = by_id(connection, id)?.is_some_and(|token| token.is_good(now));
    revoke_with_all(connection, id, now)?;
    Ok(was_good)
}

fn revoke_with_all(connection: &Connection, id: i64, now: Timestamp) -> Result<(), InboxError> {
    let sql = "WITH RECURSIVE made (id) AS (
                   VALUES (?1) UNION SELECT t.id FROM token t JOIN made ON t.parent = made.id)
               UPDATE token SET revoked_at = ?2 WHERE revoked_at IS NULL AND id IN (SELECT id FROM made)";
    prepare(connection, sql)?.execute([id, now.as_millisecond()]).map(drop).map_err(unavailable)
}

/// Spends a link for a session, which ends and is revoked with what the link was made from.
pub(super) fn redeem(
    session: &Session,
    link: &[u8; 32],
    kept: &Token,
    now: Timestamp,
) -> Result<Option<Token>, InboxError> {
    let Some(link) = find(session.connection, link)?.filter(|one| one.kind == TokenKind::Link && one.is_good(now))
    else {
        return Ok(None);
    };
    let sql = "UPDATE token SET revoked_at = ?2, used_at = ?2 WHERE id = ?1";
    prepare(session.connection, sql)?.execute([link.id, now.as_millisecond()]).map_err(unavailable)?;
    let mut kept = bounded(session.connection, &Token { scope: link.scope, parent: link.parent, ..kept.clone() })?;
    kept.id = add(session, &kept)?;
    Ok(Some(kept))
}

/// Notes when tokens were used, and forgets links and sessions that have been over for long.
pub(super) fn used(session: &Session, used: &[(i64, Timestamp)]) -> Result<(), InboxError> {
    let sql = "UPDATE token SET used_at = max(coalesce(used_at, ?2), ?2) WHERE id = ?1";
    let mut update = prepare(session.connection, sql)?;
    for (id, at) in used {
        update.execute([*id, at.as_millisecond()]).map_err(unavailable)?;
    }
    match used.iter().map(|(_, at)| *at).max() {
        Some(now) => {
            let oldest = now.checked_sub(OVER_KEPT).unwrap_or(Timestamp::MIN).as_millisecond();
            forget_over(session.connection, None, false, oldest)
        }
        None => Ok(()),
    }
}

/// Forgets the links and sessions, `and_bearers` too, that were over before a moment: those of a workspace, or all.
fn forget_over(
    connection: &Connection,
    workspace: Option<&str>,
    and_bearers: bool,
    before: i64,
) -> Result<(), InboxError> {
    let sql = "DELETE FROM token WHERE (?1 IS NULL OR workspace = ?1) AND (?2 OR kind <> 'bearer')
                   AND (expires_at < ?3 OR revoked_at < ?3)";
    prepare(connection, sql)?.execute(params![workspace, and_bearers, before]).map(drop).map_err(unavailable)
}
