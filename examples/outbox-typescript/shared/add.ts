/** `node dist/add.js NAME …` adds a row by hand, also while the server runs. */
import { parseArgs } from "node:util";

import { defaultPath, LEVELS, Outbox, OutboxError } from "./outbox.js";

const USAGE = `usage: node dist/add.js NAME [--level ${LEVELS.join("|")}] [--title T] [--subject S] [--body B]
                        [--link URI] [--data JSON] [--id ID]
OUTBOX_FILE names the file.`;

function main(): number {
  const text = { type: "string" } as const;
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { level: text, title: text, subject: text, body: text, link: text, data: text, id: text },
    });
    const [name, ...more] = positionals;
    if (name === undefined || more.length > 0) throw new TypeError("give one NAME");
    const { data, id: eventId, ...fields } = values;
    const outbox = new Outbox(defaultPath());
    const added = outbox.add({ ...fields, name, eventId, data: data === undefined ? {} : JSON.parse(data) });
    console.log(`${name} is in ${outbox.path} as ${added}`);
    return 0;
  } catch (error) {
    if (error instanceof OutboxError) console.error(error.message);
    else if (error instanceof SyntaxError) console.error(`--data is not JSON: ${error.message}`);
    else console.error(`${(error as Error).message}\n${USAGE}`);
    return 2;
  }
}

process.exitCode = main();
