//! Events come in: outboxes are read over MCP and their events judged.
