import { a2aTool } from '@millrace/a2a';
import { a2a } from '@millrace/a2a/server';
import {
  approval,
  createAgent,
  type Interceptor,
  type Layer,
  MillraceError,
  type Model,
  tool,
} from '@millrace/core';
import { finish, scriptedModel, text } from '@millrace/core/testing';
import { flowAgent } from '@millrace/flow';
import { cacheResponses, circuitBreaker } from '@millrace/gateway';
import { mcp } from '@millrace/mcp';
import { serveMcp } from '@millrace/mcp/server';
import { hedge, liveInstructions, liveModel, liveTools, speculate } from '@millrace/reactive';
import { chatServer } from '@millrace/server/chat';
import { approvalQueue, type PendingApproval } from '@millrace/server/approvals';
import { serve } from '@millrace/server/node';
import { searchDocuments } from '@millrace/tools';
import {
  defer,
  firstValueFrom,
  map,
  mergeMap,
  NEVER,
  type Observable,
  ReplaySubject,
  share,
  Subscription,
} from 'rxjs';
import {
  agentOf,
  type Ask,
  gated,
  gating,
  type Parts,
  user,
  type Wait,
} from './async-context.test-support.js';

const layered =
  (layers: (parts: Parts) => readonly Layer[]) =>
  (parts: Parts): Ask => {
    const agent = agentOf(parts, ...layers(parts));
    return (_, options) => agent.call('?', options);
  };

const slow = (model: Model): Model => ({
  ...model,
  stream$: (...given) => gating(model.stream$(...given)),
});

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

const running = new Subscription();
const stop = (): void => running.unsubscribe();

/** Starts a server, and returns its address. */
const started = <T>(server$: Observable<T>, addressOf: (it: T) => string): Promise<string> => {
  const address$ = new ReplaySubject<string>(1);
  running.add(server$.pipe(map(addressOf)).subscribe(address$));
  return firstValueFrom(address$);
};

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

const serverWaits: readonly Wait[] = [
  {
    name: 'approvalQueue()',
    share: (parts) => {
      const queue = approvalQueue({ key: 'a key of more than thirty-two characters' });
      const decide = ({ token }: PendingApproval): Promise<void> =>
        user.run('somebody else', () => queue.decide(token, true).catch(() => undefined));
      const decided$ = queue.requests$.pipe(
        mergeMap((requests) => Promise.all(requests.map(decide))),
      );
      running.add(decided$.subscribe());
      return layered(() => [approval(queue.approve)])(parts);
    },
  },
  {
    name: 'the queue of a conversation of chatServer()',
    share: (parts) => {
      const server = chatServer(agentOf({ ...parts, model: slow(parts.model) }));
      return async (who) => {
        const messages = [{ role: 'user', parts: [{ type: 'text', text: who }] }];
        const request = new Request('http://localhost/api/chat', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ id: 'room', messages }),
        });
        await (await server.respond(request)).text();
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
    share: async (parts) => {
      const answers = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(() => [text('Booked.'), finish()]);
      const remote = createAgent({ name: 'booking', model: scriptedModel(...answers) });
      const protocols = [a2a({ description: 'Books rooms.' })];
      const url = await started(serve(remote, { port: 0, protocols }), (it) => it.url);
      const book = a2aTool(url, { name: 'booking', description: 'Books rooms.' });
      const asking = parts.asking('booking');
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
        model: parts.asking('search_docs'),
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
  ...serverWaits,
  ...toolWaits,
];
export { stop };
