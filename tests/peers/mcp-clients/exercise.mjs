// What the clients of both lines of the TypeScript SDK do: reads an inbox as an agent does, and prints what it got as one
// JSON value. The one argument says how to reach the server: {"url", "token"} or {"command", "environment"}.

export const asked = JSON.parse(process.argv[2]);

export async function exercise(client, more) {
  const text = (found) => JSON.parse(found.contents[0].text);
  const read = async (uri) => text(await client.readResource({ uri }));
  const call = (name, given) => client.callTool({ name, arguments: given });
  const start = await read("switchbell://notifications");
  const beginning = start.cursor.replace(/[0-9]+$/, "0");
  const found = {
    server: client.getServerVersion().name,
    tools: (await client.listTools()).tools,
    listed: await call("notifications__list", { order: "oldest" }),
    acknowledged: await call("notifications__acknowledge", { ids: [1] }),
    refused: await call("notifications__list", { level: "loud" }),
    resources: (await client.listResources()).resources,
    templates: (await client.listResourceTemplates()).resourceTemplates,
    start,
    page: await read(`switchbell://notifications?cursor=${beginning}&maxEvents=2&maxAgeMs=7776000000`),
    ...more(),
  };
  await client.close();
  console.log(JSON.stringify(found));
}
