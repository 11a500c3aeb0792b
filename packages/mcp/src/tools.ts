import {
  MillraceError,
  restoreAsyncContext,
  type Tool,
  tool,
  type ToolContext,
  textBlock,
  toolOutput,
} from 'millrace';
import { jsonSchema } from 'millrace/schema';
import type { Client, Progress, Tool as ListedTool } from '@modelcontextprotocol/client';
import {
  concatMap,
  defer,
  EMPTY,
  filter,
  finalize,
  identity,
  map,
  merge,
  mergeMap,
  type MonoTypeOperatorFunction,
  type Observable,
  of,
  type OperatorFunction,
  type SchedulerLike,
  Subject,
  switchMap,
  take,
  throwError,
  timeout,
  timer,
} from 'rxjs';
import { isConnection, type Link, settleMs } from './connection.js';
import { outputOf, outputOfPrompt, outputOfResource, pageOfTool } from './content.js';
import { rawOf } from './message-reader.js';
import { withPages$ } from './required-pages.js';
import type { Server } from './server-options.js';
import { runsAsTask, taskIn, taskOutput$ } from './tasks.js';
import { cleaned, lineOfJson, readableSchema, safeName } from './text.js';

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
  return jsonSchema(readableSchema(inputSchema, limits.description), { patterns: engine });
};

/** The declaration of a server. */
export type Offered = ReturnType<Client['getServerCapabilities']>;

/** Creates the tool that calls a listed tool over a link, as long as the server lists it as it is here. */
export const toolOf = (
  server: Server,
  link: Link,
  listed: ListedTool,
  input: InputOfTool,
  offered: Offered,
  isCurrent: () => boolean,
): Tool => {
  const { limits, prefix, trust = false, wrap } = server;
  const { name, title, description = title ?? '', annotations: hints } = listed;
  const about = cleaned(description, limits.description).trim();
  const asTask = runsAsTask(server, listed, offered);
  const made = tool({
    name: safeName(prefix, name),
    description: about === '' ? `The tool ${safeName('', name)} of ${server.name}.` : about,
    input,
    idempotent: trust && (hints?.readOnlyHint === true || hints?.idempotentHint === true),
    ...timeLimit(server),
    run: (values, context) =>
      upToDate$(link, context.scheduler).pipe(
        switchMap(() => run$(server, link, { listed, isCurrent, asTask }, values, context)),
      ),
  });
  return wrap === undefined ? made : wrap(made, listed);
};

const changed = ({ name }: ListedTool): unknown => {
  const text = `Not run: the server has changed the tool '${safeName('', name)}'. Call it again if you still have it.`;
  return { content: [{ type: 'text', text }], isError: true };
};

interface ToRun {
  readonly listed: ListedTool;
  readonly isCurrent: () => boolean;
  readonly asTask: boolean;
}

/** The longest delay of a timer. */
const never = 2 ** 31 - 1;

const timeLimit = ({
  timeouts: { toolMs, renewOnProgress = false, totalMs = never },
}: Server): { readonly timeoutMs?: number } => {
  if (renewOnProgress) return { timeoutMs: totalMs };
  return toolMs === undefined ? {} : { timeoutMs: toolMs };
};

/** Emits progress, then the output. The output schema is not compiled: a result is data of any form. */
const run$ = (
  server: Server,
  link: Link,
  { listed: { outputSchema: _unused, ...listed }, isCurrent, asTask }: ToRun,
  values: Readonly<Record<string, unknown>>,
  { scheduler, signal }: Pick<ToolContext, 'scheduler' | 'signal'>,
): Observable<unknown> =>
  defer(() => {
    const { limits } = server;
    const doing = `to run '${safeName('', listed.name)}'`;
    const progress$ = new Subject<Progress>();
    const call = { name: listed.name, arguments: { ...values }, ...(asTask && { task: {} }) };
    const result$ = withPages$(server, link, { doing, scheduler, signal }, (client, options) =>
      // Asked for each connection: a server that lost its session may be another one.
      isCurrent()
        ? client
            .callTool(call, {
              ...options,
              toolDefinition: listed,
              onprogress: (progress) => progress$.next(progress),
            })
            .then(rawOf)
        : Promise.resolve(changed(listed)),
    );
    const finished$ = result$.pipe(
      switchMap((raw) => {
        const task = taskIn(raw);
        return task === undefined
          ? of(outputOf(raw, limits.result, pageOfTool(listed._meta)))
          : taskOutput$(server, link, task, {
              tool: listed.name,
              scheduler,
              report: (progress) => progress$.next(progress),
            });
      }),
      listSettled(server, link, scheduler),
      finalize(() => progress$.complete()),
    );
    return merge(progress$, finished$.pipe(map((output) => ({ output })))).pipe(
      renewed(server, listed.name, scheduler),
      limitedProgress(),
    );
  });

type Emitted = Progress | { readonly output: unknown };

/** Progress starts the time limit again. */
const renewed = (
  { timeouts: { renewOnProgress = false, toolMs = 60_000 } }: Server,
  name: string,
  scheduler: SchedulerLike,
): MonoTypeOperatorFunction<Emitted> =>
  renewOnProgress
    ? timeout({
        each: toolMs,
        scheduler,
        with: () =>
          throwError(
            () =>
              new MillraceError(
                'timeout',
                `The tool '${safeName('', name)}' reported no progress within ${toolMs} ms.`,
              ),
          ),
      })
    : identity;

const limitedProgress = (): OperatorFunction<Emitted, unknown> => (source) =>
  source.pipe(
    mergeMap((emitted, index) => {
      if ('output' in emitted) return of(emitted.output);
      return index < mostProgress ? of(shown(emitted)) : EMPTY;
    }),
  );

const shown = ({ progress, total, message }: Progress): object => ({
  progress,
  ...(total !== undefined && { total }),
  ...(message !== undefined && { message: cleaned(message, 500) }),
});

/** A change of the list that comes with a result may arrive after it over HTTP, on another stream. */
const announceMs = 25;

/** Emits once the list of tools has the changes that were announced before, on a new connection once there is one. */
const upToDate$ = ({ current$ }: Link, scheduler: SchedulerLike): Observable<unknown> =>
  defer(() => {
    const { value: connection } = current$;
    if (!isConnection(connection)) return of(0);
    const { version$, listed$ } = connection;
    const awaited = version$.value;
    return listed$.pipe(
      filter((version) => version >= awaited),
      take(1),
      timeout({ first: settleMs, scheduler, with: () => of(0) }),
      // The list is read in the async context of the call that opened the connection.
      restoreAsyncContext(),
    );
  });

/** Delays a result until the list of tools has the changes that were announced before it, or together with it. */
const listSettled =
  <T>({ http }: Server, link: Link, scheduler: SchedulerLike): MonoTypeOperatorFunction<T> =>
  (source) =>
    source.pipe(
      concatMap((value) => {
        const { value: connection } = link.current$;
        if (!isConnection(connection)) return of(value);
        const { client, version$, listed$ } = connection;
        const isOutdated = listed$.value < version$.value;
        const announces = client.getServerCapabilities()?.tools?.listChanged === true;
        const waitMs = http === undefined ? 0 : announceMs;
        const soon$ = announces && !isOutdated ? timer(waitMs, scheduler) : of(0);
        return soon$.pipe(
          switchMap(() => upToDate$(link, scheduler)),
          map(() => value),
        );
      }),
    );

// ---------------------------------------------------------------- resources and prompts

/** Tools for what a server offers beside tools, if its options ask for them. */
export const furtherTools = (server: Server, link: Link, offered: Offered): readonly Tool[] => [
  ...(server.resources === true && offered?.resources ? resourceTools(server, link) : []),
  ...(server.prompts === true && offered?.prompts ? promptTools(server, link) : []),
];

const resourceTools = (server: Server, { request$ }: Link): readonly Tool[] => {
  const { limits } = server;
  return [
    tool({
      name: safeName(server.prefix, 'list_resources'),
      description: `Lists the resources of ${server.name}, with their URIs.`,
      ...timeLimit(server),
      run: () =>
        request$('to list its resources', (client, options) =>
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
        request$('to read a resource', (client, options) =>
          client.readResource({ uri }, { ...options, cacheMode: 'bypass' }),
        ).pipe(map((result) => outputOfResource(rawOf(result), limits.result))),
    }),
  ];
};

const promptTools = (server: Server, { request$ }: Link): readonly Tool[] => {
  const { limits } = server;
  return [
    tool({
      name: safeName(server.prefix, 'list_prompts'),
      description: `Lists the prompts of ${server.name}, with their arguments.`,
      ...timeLimit(server),
      run: () =>
        request$('to list its prompts', (client, options) =>
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
        request$('to get a prompt', (client, options) =>
          client.getPrompt({ name, arguments: { ...args } }, options),
        ).pipe(map((result) => outputOfPrompt(rawOf(result), limits.result))),
    }),
  ];
};

const listOf = (items: readonly object[], maxLength: number): unknown =>
  toolOutput({
    content: [textBlock(cleaned(items.map(lineOfJson).join('\n'), maxLength))],
  });
