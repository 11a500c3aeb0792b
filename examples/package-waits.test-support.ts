import { a2aTool } from '@millrace/a2a';
import { a2a } from '@millrace/a2a/server';
import {
  createAgent,
  fromPull,
  type Interceptor,
  type Layer,
  MillraceError,
  type Model,
  type ModelChunk,
  tool,
} from 'millrace';
import { inProcessLongTermMemory, extractMemories } from 'millrace/long-term-memory';
import { finish, scriptedModel, text } from 'millrace/testing';
import { flowAgent } from '@millrace/flow';
import {
  cacheResponses,
  circuitBreaker,
  hedge,
  liveInstructions,
  liveModel,
  liveTools,
  speculate,
} from '@millrace/gateway';
import { mcp } from '@millrace/mcp';
import { serveMcp } from '@millrace/mcp/server';
import { serve } from '@millrace/server/node';
import { searchDocuments } from '@millrace/tools';
import { concat, defer, delay, map, mergeMap, NEVER, type Observable, of, share } from 'rxjs';
import { agentOf, gated, user, users, type Wait } from './async-context.test-support.js';
import { serverWaits } from './server-waits.test-support.js';
import { ended, layered, running, slow, started } from './waits.test-support.js';

const fail = (): never => {
  throw new MillraceError('server', 'Down.');
};

/** Emits one value for all users, when somebody else opens the gate. */
const shared = <T>(value: T): Observable<T> => defer(() => gated(value)).pipe(share());

const isHook = (layer: Layer): layer is Interceptor => 'hook' in layer;

/** The same layers, for the agents in the components of a flow. */
const inherited = (use: readonly Layer[]): readonly Layer[] => [
  ...use.filter((layer) => !isHook(layer)).map((layer): Layer => ({ ...layer, inherit: true })),
  { name: 'seeing', inherit: true, on: use.filter(isHook) },
];

const reactiveWaits: readonly Wait[] = [
  {
    name: 'hedge() after a failure',
    share: (parts) =>
      layered(() => [])({
        ...parts,
        model: hedge({ name: 'failing', stream$: () => gated(0).pipe(map(fail)) }, parts.model, {
          afterMs: 60_000,
        }),
      }),
  },
  {
    name: 'hedge() of a slow model',
    share: (parts) =>
      layered(() => [])({
        ...parts,
        model: hedge({ name: 'stuck', stream$: () => NEVER }, slow(parts.model), { afterMs: 5 }),
      }),
  },
  { name: 'liveInstructions()', share: layered(() => [liveInstructions(shared('Be kind.'))]) },
  { name: 'liveModel()', share: layered(({ model }) => [liveModel(shared(model))]) },
  {
    name: 'liveTools()',
    share: (parts) => layered(() => [liveTools(shared(parts.tools))])({ ...parts, tools: [] }),
  },
  {
    name: 'speculate()',
    share: (parts) =>
      layered(() => [speculate({ tools: ['who'] })])({
        ...parts,
        model: slow(parts.model),
        // An interceptor that could edit tool calls keeps them from starting early.
        use: parts.use.filter(({ name }) => name !== "on('preActing')"),
      }),
    // It starts before its step, and so before its span.
    isEarly: true,
  },
];

const readOn = async (events: AsyncIterator<unknown>): Promise<void> => {
  let isDone = false;
  while (!isDone) isDone = (await events.next()).done === true;
};

const gatewayWaits: readonly Wait[] = [
  {
    name: 'cacheResponses(): one request for all',
    without: ['model'],
    share: (parts) =>
      layered(() => [cacheResponses({ scope: () => 'all', when: () => true })])({
        ...parts,
        model: slow(parts.model),
      }),
  },
  {
    name: 'cacheResponses(): one request that a reader holds back',
    without: ['model'],
    share: (parts) => {
      // Read by one user for all, when one of them wants more.
      const dots = async function* (who: string): AsyncGenerator<ModelChunk> {
        for (let left = 200; left > 0; left -= 1) {
          parts.see('read', who);
          yield text('.');
          await Promise.resolve();
        }
      };
      const model: Model = {
        ...parts.model,
        stream$: (request, context) =>
          concat(
            defer(() => {
              const who = user.getStore() ?? 'nobody';
              return fromPull(() => dots(who), context.demand);
            }),
            parts.model.stream$(request, context),
          ),
      };
      const cache = cacheResponses({ scope: () => 'all', when: () => true });
      const agent = agentOf({ ...parts, model }, cache);
      return async (who, options) => {
        // The others join when nobody reads any more.
        if (who !== 'ann') await ended(gated(0).pipe(delay(20)));
        const events = agent.stream('?', options)[Symbol.asyncIterator]();
        await events.next();
        await ended(
          gated(0).pipe(
            delay(60),
            mergeMap(() => readOn(events)),
          ),
        );
      };
    },
  },
  {
    name: 'cacheResponses(): a slow store',
    share: layered(() => [
      cacheResponses({
        scope: ({ callId }) => callId,
        when: () => true,
        store: { get$: () => gated(undefined), set$: () => gated(0) },
      }),
    ]),
  },
  {
    name: 'circuitBreaker()',
    share: (parts) => layered(() => [])({ ...parts, model: circuitBreaker()(slow(parts.model)) }),
  },
];

const memoryWaits: readonly Wait[] = [
  {
    name: 'extractMemories(): a flush by somebody else',
    share: (parts) => {
      const extracting: Model = {
        name: 'extracting',
        stream$: ({ messages }) =>
          defer(() => {
            const shown = JSON.stringify(messages);
            parts.see('extraction', users.find((it) => shown.includes(it)) ?? 'nobody');
            return of(text('{"operations":[]}'), finish());
          }),
      };
      const memory = inProcessLongTermMemory();
      const extraction = extractMemories({ model: extracting, memory, quietMs: 60_000 });
      const agent = agentOf(parts, extraction);
      return async (who, options) => {
        await agent.call(`I am ${who}.`, options);
        await user.run('somebody else', () => ended(extraction.flush$()));
      };
    },
  },
];

const toolWaits: readonly Wait[] = [
  {
    name: 'the first connection of mcp()',
    share: async (parts) => {
      const add = tool({ name: 'add', description: 'Adds.', run: () => '3' });
      const server$ = serveMcp([add], { name: 'shop', http: { port: 0 } });
      const url = await started(server$, (it) => (it.transport === 'http' ? it.url : ''));
      const absent = { name: 'absent', stdio: { command: 'no-such-program' } };
      return layered(() => [mcp({ name: 'shop', http: { url } }, absent)])({
        ...parts,
        model: parts.asking('shop_add'),
      });
    },
  },
  {
    name: 'the card of a2aTool()',
    also: ['request'],
    share: async (parts) => {
      const answers = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(() => [text('Booked.'), finish()]);
      const remote = createAgent({ name: 'booking', model: scriptedModel(...answers) });
      const protocols = [a2a({ description: 'Books rooms.' })];
      const url = await started(serve(remote, { port: 0, protocols }), (it) => it.url);
      const { fetch } = globalThis;
      // As an instrumentation does, which adds the active span.
      globalThis.fetch = (...given) => {
        if (given[1]?.method === 'POST') parts.see('request', user.getStore() ?? 'nobody');
        return fetch(...given);
      };
      running.add(() => void (globalThis.fetch = fetch));
      const book = a2aTool(url, { name: 'booking', description: 'Books rooms.' });
      const asking = parts.asking({ booking: { message: 'A room.' } });
      return layered(() => [])({ ...parts, model: asking, tools: [book, ...parts.tools] });
    },
  },
  {
    name: 'the index of searchDocuments()',
    share: (parts) => {
      const search = searchDocuments({
        load: () => gated({ path: 'a.md', text: 'Mills are old.' }),
      });
      return layered(() => [])({
        ...parts,
        model: parts.asking({ search_docs: { query: 'mills' } }),
        tools: [search, ...parts.tools],
      });
    },
  },
  {
    name: 'the components of a flow',
    isNested: true,
    share: (parts) => {
      const branch = { component_name: 'agent', params: { llm_id: 'small', tools: ['who'] } };
      const document = {
        version: 1,
        name: 'office',
        components: {
          begin: { component_name: 'begin', downstream: ['a', 'b'] },
          a: { ...branch, downstream: ['c'] },
          b: { ...branch, downstream: ['c'] },
          c: { ...branch, downstream: ['end'] },
          end: { component_name: 'message', params: { content: '{{a@output}} {{c@output}}' } },
        },
      };
      const flow = flowAgent(document, {
        models: { small: slow(parts.model) },
        tools: [...parts.tools],
        use: [...inherited(parts.use)],
      });
      return (_, options) => flow.call('?', options);
    },
  },
];

/** The waits of the other packages. */
export const packageWaits: readonly Wait[] = [
  ...reactiveWaits,
  ...gatewayWaits,
  ...memoryWaits,
  ...serverWaits,
  ...toolWaits,
];
