// Judges documents by a schema. Standard input is `{schema, documents: [{name, text}]}`, the texts in YAML; standard output
// `{schema: [error], examples: [error], documents: {name: [error]}}`, where an error is `/path: message`.
//
// "examples" are what is wrong with the `examples` and `default`s in the schema, each held against the schema it stands in.

import { readFileSync } from "node:fs";
import Ajv from "ajv";
import { parse } from "yaml";

const { schema, documents } = JSON.parse(readFileSync(0, "utf8"));

// Keywords of yaml-language-server.
const KEYWORDS = [
  "markdownDescription",
  "enumDescriptions",
  "errorMessage",
  "patternErrorMessage",
  "defaultSnippets",
  "doNotSuggest",
];
const ajv = new Ajv({ allErrors: true, strict: true, allowUnionTypes: true, strictRequired: false, strictTypes: false });
KEYWORDS.forEach((keyword) => ajv.addKeyword(keyword));

const told = (errors) => (errors ?? []).map((error) => `${error.instancePath}: ${error.message} ${JSON.stringify(error.params)}`);

/** Every schema in a schema, with its place. */
function* schemas(node, place) {
  if (node === null || typeof node !== "object") return;
  yield [node, place];
  for (const key of ["items", "propertyNames", "additionalProperties", "not", "if", "then", "else"]) yield* schemas(node[key], `${place}/${key}`);
  for (const key of ["properties", "dependencies", "definitions"]) {
    for (const [name, inner] of Object.entries(node[key] ?? {})) yield* schemas(inner, `${place}/${key}/${name}`);
  }
  for (const [index, inner] of (node.anyOf ?? []).entries()) yield* schemas(inner, `${place}/anyOf/${index}`);
}

/** What a snippet writes when a person takes what it proposes. */
function taken(body) {
  if (Array.isArray(body)) return body.map(taken);
  if (typeof body === "string") return parse(text(body), { version: "1.2" });
  return Object.fromEntries(Object.entries(body).map(([key, value]) => [text(key), taken(value)]));
}
const text = (body) => body.replace(/^\$\{\d+:(.*)\}$/, "$1").replace(/\\(.)/g, "$1");

const examples = [];
for (const [inner, place] of schemas(schema, "#")) {
  const values = [...(inner.examples ?? []), ...("default" in inner ? [inner.default] : [])];
  values.push(...(inner.defaultSnippets ?? []).map((snippet) => taken(snippet.body)));
  if (values.length === 0) continue;
  const fits = ajv.compile({ ...inner, definitions: schema.definitions });
  for (const value of values) {
    if (!fits(value)) examples.push(`${place}: ${JSON.stringify(value)}: ${told(fits.errors)}`);
  }
}
for (const [inner, place] of schemas(schema, "#")) {
  for (const [key, value] of Object.entries(inner.properties ?? {})) {
    if (value.doNotSuggest || place.includes("/dependencies/")) continue;
    const words = [value, ...(value.anyOf ?? [])].flatMap((one) => one.enum ?? []);
    const shown = value.examples?.length || words.length || value.markdownDescription?.includes("For example `");
    if (!shown) examples.push(`${place}: ${key} has no example`);
    if (!value.description?.endsWith(".")) examples.push(`${place}: ${key} has no description`);
  }
}

const judge = ajv.compile(schema);
const verdicts = {};
for (const { name, text } of documents) {
  try {
    const value = parse(text, { version: "1.2", schema: "core", uniqueKeys: true, logLevel: "error" });
    judge(value);
    verdicts[name] = told(judge.errors);
  } catch (error) {
    verdicts[name] = [`: no YAML: ${error.message.split("\n")[0]}`];
  }
}
ajv.validateSchema(schema);
process.stdout.write(JSON.stringify({ schema: told(ajv.errors), examples, documents: verdicts }));
