import { type JsonSchema, type Tool, tool, textBlock, toolOutput } from '@millrace/core';
import { jsonSchema } from '@millrace/core/schema';
import { isRecord } from '@millrace/core/values';
import type { CallToolResult, Progress, Tool as ListedTool } from '@modelcontextprotocol/client';
import { defer, finalize, map, merge, type Observable, Subject, take } from 'rxjs';
import type { Connection } from './connection.js';
import { outputOf, outputOfPrompt, outputOfResource } from './content.js';

import type { Server } from './server-options.js';
import { cleaned, lineOfJson, safeName } from './text.js';

export type InputOfTool = ReturnType<typeof jsonSchema>;

/** Progress notifications per run; further ones are dropped. */
const mostProgress = 1_000;

/** Compiles the input schema of a listed tool. Throws why it cannot be used. */
export const inputOf = ({ limits, patterns }: Server, { inputSchema }: ListedTool): InputOfTool => {
  const length = JSON.stringify(inputSchema).length;
  if (length > limits.schema) {
    throw new Error(`its schema has ${length} characters, the limit is ${limits.schema}`);
  }
  const engine = patterns ?? (() => ({ test: () => true }));
  return jsonSchema(readable(inputSchema, limits.description), { patterns: engine });
};

/** Cleans the descriptions in a schema. Data, such as in an `enum`, stays unchanged. */
const readable = (schema: JsonSchema, maxLength: number): JsonSchema => {
  const part = (value: unknown): unknown => (isRecord(value) ? readable(value, maxLength) : value);
  const entries = Object.entries(schema).map(([key, value]): readonly [string, unknown] => {
    if (/^(enum|const|default|examples)$/.test(key)) return [key, value];
    if (/^(description|title|\$comment)$/.test(key) && typeof value === 'string') {
      return [key, cleaned(value, maxLength)];
    }
    return [key, Array.isArray(value) ? value.map(part) : part(value)];
  });
  return Object.fromEntries(entries);
};

/** Creates the tool that calls a listed tool over a connection. */
export const toolOf = (
  server: Server,
  connection: Connection,
  listed: ListedTool,
  input: InputOfTool,
): Tool => {
  const { limits, prefix, trust = false, wrap } = server;
  const { name, title, description = title ?? '', annotations: hints } = listed;
  const about = cleaned(description, limits.description).trim();
  const made = tool({
    name: safeName(prefix, name),
    description: about === '' ? `The tool ${safeName('', name)} of ${server.name}.` : about,
    input,
    idempotent: trust && (hints?.readOnlyHint === true || hints?.idempotentHint === true),
    ...timeLimit(server),
    run: (values) => run$(server, connection, listed, values),
  });
  return wrap === undefined ? made : wrap(made, listed);
};

const timeLimit = ({ timeouts: { toolMs } }: Server): { readonly timeoutMs?: number } =>
  toolMs === undefined ? {} : { timeoutMs: toolMs };

/** Emits progress, then the output. The output schema is not compiled: a result is data of any form. */
const run$ = (
  { limits }: Server,
  { client, request$ }: Connection,
  { outputSchema: _unused, ...listed }: ListedTool,
  values: Readonly<Record<string, unknown>>,
): Observable<unknown> =>
  defer(() => {
    const progress$ = new Subject<Progress>();
    const result$ = request$<CallToolResult>(`to run '${safeName('', listed.name)}'`, (options) =>
      client.callTool(
        { name: listed.name, arguments: { ...values } },
        {
          ...options,
          toolDefinition: listed,
          onprogress: (progress) => progress$.next(progress),
        },
      ),
    );
    return merge(
      progress$.pipe(take(mostProgress), map(shown)),
      result$.pipe(
        map((result) => outputOf(result, limits.result)),
        finalize(() => progress$.complete()),
      ),
    );
  });

const shown = ({ progress, total, message }: Progress): object => ({
  progress,
  ...(total !== undefined && { total }),
  ...(message !== undefined && { message: cleaned(message, 500) }),
});

// ---------------------------------------------------------------- resources and prompts

/** Tools for what a server offers beside tools, if its options ask for them. */
export const furtherTools = (server: Server, connection: Connection): readonly Tool[] => {
  const offered = connection.client.getServerCapabilities();
  return [
    ...(server.resources === true && offered?.resources ? resourceTools(server, connection) : []),
    ...(server.prompts === true && offered?.prompts ? promptTools(server, connection) : []),
  ];
};

const resourceTools = (server: Server, { client, request$ }: Connection): readonly Tool[] => {
  const { limits } = server;
  return [
    tool({
      name: safeName(server.prefix, 'list_resources'),
      description: `Lists the resources of ${server.name}, with their URIs.`,
      ...timeLimit(server),
      run: () =>
        request$('to list its resources', (options) =>
          client.listResources(undefined, { ...options, cacheMode: 'bypass' }),
        ).pipe(
          map(({ resources }) =>
            listOf(
              resources.map(({ uri, name, description }) => ({ uri, name, description })),
              limits.result,
            ),
          ),
        ),
    }),
    tool({
      name: safeName(server.prefix, 'read_resource'),
      description: `Reads a resource of ${server.name} by its URI.`,
      input: jsonSchema({
        type: 'object',
        properties: { uri: { type: 'string' } },
        required: ['uri'],
      }),
      ...timeLimit(server),
      run: ({ uri }) =>
        request$('to read a resource', (options) =>
          client.readResource({ uri }, { ...options, cacheMode: 'bypass' }),
        ).pipe(map((result) => outputOfResource(result, limits.result))),
    }),
  ];
};

const promptTools = (server: Server, { client, request$ }: Connection): readonly Tool[] => {
  const { limits } = server;
  return [
    tool({
      name: safeName(server.prefix, 'list_prompts'),
      description: `Lists the prompts of ${server.name}, with their arguments.`,
      ...timeLimit(server),
      run: () =>
        request$('to list its prompts', (options) =>
          client.listPrompts(undefined, { ...options, cacheMode: 'bypass' }),
        ).pipe(
          map(({ prompts }) =>
            listOf(
              prompts.map(({ name, description, arguments: args }) => ({
                name,
                description,
                args,
              })),
              limits.result,
            ),
          ),
        ),
    }),
    tool({
      name: safeName(server.prefix, 'get_prompt'),
      description: `Gets a prompt of ${server.name} by its name.`,
      input: jsonSchema({
        type: 'object',
        properties: {
          name: { type: 'string' },
          arguments: { type: 'object', additionalProperties: { type: 'string' } },
        },
        required: ['name'],
      }),
      ...timeLimit(server),
      run: ({ name, arguments: args = {} }) =>
        request$('to get a prompt', (options) =>
          client.getPrompt({ name, arguments: { ...args } }, options),
        ).pipe(map((result) => outputOfPrompt(result, limits.result))),
    }),
  ];
};

const listOf = (items: readonly object[], maxLength: number): unknown =>
  toolOutput({
    content: [textBlock(cleaned(items.map(lineOfJson).join('\n'), maxLength))],
  });
