// The titles in the schemas of tools, which their authors have written for people. Nothing else of a schema leaves the server here.
import type { Agent } from 'millrace';
import { isRecord } from 'millrace/values';
import type { Route } from '@millrace/server/chat';
import { of } from 'rxjs';

/** `GET …/tool-titles` has the titles in the schemas of the agent's tools, by their names. */
export const toolTitlesRoute = (api: string, { tools }: Pick<Agent, 'tools'>): Route => {
  const titled = tools
    .flatMap((it) => ('tools' in it ? it.tools : [it]))
    .flatMap(({ name, inputSchema, outputSchema }) => {
      const titles = present({ input: titlesIn(inputSchema), output: titlesIn(outputSchema) });
      return titles === undefined ? [] : [[name, titles] as const];
    });
  const body = { tools: Object.fromEntries(titled) };
  return {
    method: 'GET',
    path: `${api}/tool-titles`,
    answer$: () => of(Response.json(body)),
  };
};

type Titles = Readonly<Record<string, unknown>>;

/** Deeper values are shown as JSON. */
const maxDepth = 6;

/** A schema without all that has no title; `undefined` if nothing has one. A description is for people only beside a title. */
const titlesIn = (schema: unknown, depth = 0): Titles | undefined => {
  if (!isRecord(schema) || depth > maxDepth) return undefined;
  const { title, description, properties, items, oneOf, anyOf } = schema;
  const isTitled = typeof title === 'string' && title !== '';
  return present({
    title: isTitled ? title : undefined,
    description: isTitled && typeof description === 'string' ? description : undefined,
    properties: isRecord(properties)
      ? present(mapped(properties, (it) => titlesIn(it, depth + 1)))
      : undefined,
    items: titlesIn(items, depth + 1),
    oneOf: optionsIn(oneOf),
    anyOf: optionsIn(anyOf),
  });
};

/** The values of a choice that have titles. */
const optionsIn = (options: unknown): readonly Titles[] | undefined => {
  const titled = (Array.isArray(options) ? options : []).flatMap((it: unknown) =>
    isRecord(it) && 'const' in it && typeof it['title'] === 'string'
      ? [{ const: it['const'], title: it['title'] }]
      : [],
  );
  return titled.length === 0 ? undefined : titled;
};

const mapped = (values: Titles, change: (value: unknown) => unknown): Titles =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]));

/** The fields that are there; `undefined` if none is. */
const present = (fields: Titles): Titles | undefined => {
  const own = Object.entries(fields).filter(([, value]) => value !== undefined);
  return own.length === 0 ? undefined : Object.fromEntries(own);
};
