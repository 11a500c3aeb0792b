import {
  addTools,
  type Approver,
  type Embedder,
  output,
  approval,
  fallback,
  fromPull,
  interruptOn,
  type Layer,
  MillraceError,
  type Model,
  type ModelChunk,
  on,
  parallel,
  prepare,
  requireApproval,
  restoreAsyncContext,
  retry,
  sequential,
  tool,
  transformChunks,
} from 'millrace';
import { guardInput } from 'millrace/guards';
import { createCallStore, draining, journal } from 'millrace/journal';
import { inProcessLongTermMemory, withLongTermMemory } from 'millrace/long-term-memory';
import { insertBefore, reasoning } from 'millrace/phases';
import { retrieve } from 'millrace/retrieval';
import { sessions } from 'millrace/sessions';
import { agentTool, asAgent } from 'millrace/teams';
import { lentContext, text } from 'millrace/testing';
import { createSemaphore, limitCalls, limitConcurrency, limitRate } from 'millrace/traffic';
import {
  concat,
  concatMap,
  delay,
  map,
  defer,
  EMPTY,
  mergeMap,
  NEVER,
  of,
  share,
  throwError,
} from 'rxjs';
import { agentOf, gated, gating, stepOf, users, type Wait } from './async-context.test-support.js';
import { sessionWaits } from './session-waits.test-support.js';
import { teamWaits } from './team-waits.test-support.js';
import { ended, layered, slow, slowCalls, stuck, wrapped } from './waits.test-support.js';

const failing: Model = {
  name: 'failing',
  stream$: () => gated(0).pipe(mergeMap(() => throwError(() => new MillraceError('server', '!')))),
};

const traffic: readonly Wait[] = [
  { name: 'limitConcurrency()', share: wrapped(limitConcurrency(1)) },
  { name: 'limitCalls()', share: layered(() => [limitCalls(createSemaphore({ max: 1 }))]) },
  {
    name: 'limitRate()',
    share: (parts) => {
      const limited = limitRate({
        tokensPerMinute: 60_000,
        count: ({ messages }) => (messages.length === 0 ? 60_000 : 5),
      });
      // Takes the tokens of a minute: from now on, all requests wait.
      const first = limited({ name: 'first', stream$: () => EMPTY });
      first.stream$({ messages: [] }, lentContext()).subscribe({ error: () => undefined });
      return wrapped(limited)(parts);
    },
  },
  {
    name: 'createSemaphore()',
    share: (parts) => {
      const semaphore = createSemaphore({ max: 1 });
      const agent = agentOf(parts);
      return (_, options) => ended(semaphore.hold$(() => agent.call$('?', options)));
    },
  },
  {
    name: 'limitConcurrency() of a sub-agent',
    isNested: 'partly',
    share: (parts) => {
      const inner = agentOf({ ...parts, model: limitConcurrency(1)(parts.model) });
      const ask = agentTool(inner, { name: 'inner', description: 'Asks another agent.' });
      const agent = agentOf({
        ...parts,
        model: parts.asking({ inner: { user_prompt: '?' } }),
        tools: [ask, ...parts.tools],
      });
      return (_, options) => agent.call('?', options);
    },
  },
  {
    name: 'retry()',
    share: wrapped((model) => {
      let requests = 0;
      const stream$: Model['stream$'] = (...given) =>
        ((requests += 1) <= 3 ? failing : model).stream$(...given);
      return retry({ ...model, stream$ }, { minMs: 1 });
    }),
  },
  { name: 'fallback()', share: wrapped((model) => fallback(failing, model)) },
];

const deciders: readonly Wait[] = [
  { name: 'approval()', share: layered(() => [approval(() => gated(true))]) },
  {
    name: 'requireApproval()',
    share: (parts) => {
      const tools = parts.tools.map((it) => requireApproval(it, () => gated(true)));
      return layered()({ ...parts, tools });
    },
  },
  {
    name: 'approvals that wait for one another',
    share: (parts) => {
      const asked: Approver = ({ context }) => {
        parts.see(
          'approver',
          context.metadata['userId'] ?? 'nobody',
          'step',
          `${stepOf(context)}/intent`,
        );
        return gated(true);
      };
      return layered(() => [approval(asked)])({ ...parts, model: parts.asking(['who', 'who']) });
    },
  },
  {
    name: 'on()',
    share: layered(() => [
      on('preReasoning', gating),
      on('postReasoning', gating),
      on('preActing', gating),
      on('postActing', gating),
      on('postCall', gating),
    ]),
  },
  {
    name: 'the validation of a tool',
    share: (parts) => {
      const tools = parts.tools.map((it) => ({
        ...it,
        validation$: (value: unknown) => gated({ valid: true, value } as const),
      }));
      return layered()({ ...parts, tools });
    },
  },
  {
    name: 'the validation of an output',
    share: (parts) => {
      const json = transformChunks(
        map((chunk) => (chunk.type === 'text' ? { ...chunk, text: '{}' } : chunk)),
      );
      const jsonSchema = { type: 'object' } as const;
      return layered(() => [
        json,
        output({ jsonSchema, validation$: (value) => gated({ valid: true, value } as const) }),
      ])(parts);
    },
  },
  { name: 'prepare()', share: layered(() => [prepare(gating)]) },
  { name: 'transformChunks()', share: layered(() => [transformChunks(gating)]) },
  { name: 'guardInput()', share: layered(() => [guardInput(() => gated(true))]) },
];

const foreign: readonly Wait[] = [
  { name: 'a model', share: wrapped(slow) },
  {
    name: 'a tool',
    share: (parts) => {
      const wait = tool({ name: 'wait', description: 'Waits.', run: () => gated('x') });
      return layered()({ ...parts, model: parts.asking('wait'), tools: [wait, ...parts.tools] });
    },
  },
  {
    name: 'a layer',
    share: layered(() => [
      {
        name: 'slow',
        call: () => (next) => (call) =>
          gated(0).pipe(
            restoreAsyncContext(),
            mergeMap(() => gating(next(call))),
          ),
        step: () => (next) => (step) => gating(next(step)),
        model: () => (model) => slow(model),
      },
    ]),
  },
  { name: 'a phase', share: layered(() => [insertBefore(reasoning, () => gating)]) },
  {
    name: 'a retriever',
    share: layered(() => {
      const passages$ = defer(() => gated([{ source: 's', text: 't' }])).pipe(share());
      return [retrieve({ retrieve$: () => passages$ })];
    }),
  },
  {
    name: 'the embedder of a long-term memory',
    share: async (parts) => {
      const embedder: Embedder = {
        embed$: (texts) => {
          parts.seeShared('embedder');
          return gated(texts.map(() => [1, 0]));
        },
      };
      const memory = inProcessLongTermMemory({ embedder });
      // More than are embedded at once.
      const facts = Array.from({ length: 80 }, (_, at) => ({ text: `Fact ${at}.` }));
      await Promise.all(users.map((userId) => ended(memory.record$({ userId }, facts))));
      return layered(({ model }) => (withLongTermMemory({ model }, { memory }).use ?? []).flat())(
        parts,
      );
    },
  },
  {
    name: 'summariseTool',
    also: ['recording'],
    share: (parts) => {
      const inner = inProcessLongTermMemory();
      const memory: typeof inner = {
        ...inner,
        record$: (scope, entries) =>
          defer(() => {
            parts.see('recording', scope.userId);
            return inner.record$(scope, entries);
          }),
      };
      const summariseTool = () => gated('It ran.');
      return layered(({ model }) =>
        (withLongTermMemory({ model }, { memory, summariseTool }).use ?? []).flat(),
      )(parts);
    },
  },
  {
    name: 'addTools() of an Observable',
    share: (parts) =>
      layered(() => [addTools(defer(() => gated(parts.tools)).pipe(share()))])({
        ...parts,
        tools: [],
      }),
  },
  {
    name: 'long-term memory',
    share: layered(({ model }) => {
      const memory = { ...inProcessLongTermMemory(), recall$: () => gated([]) };
      return (withLongTermMemory({ model }, { memory }).use ?? []).flat();
    }),
  },
  {
    name: 'a journal',
    share: layered(() => [journal(createCallStore(slowCalls()))]),
  },
];

const ends: readonly Wait[] = [
  {
    name: 'interrupt() of a session',
    without: ['tool', 'preActing', 'postActing'],
    share: (parts) => {
      const chats = sessions(agentOf({ ...parts, model: stuck(parts.model) }));
      return (who, options) => {
        gated(0)
          .pipe(concatMap(() => gated(0)))
          .subscribe(() => chats.open(who).interrupt('Stop.'));
        return chats.open(who).call('?', options);
      };
    },
  },
  {
    name: 'interrupt() of a layer that waits in a step',
    without: ['tool', 'preActing', 'postActing', 'model', 'preReasoning', 'phase'],
    share: (parts) => {
      const step = {
        kind: 'wait',
        id: 'never',
        input: undefined,
        run: () => NEVER,
        cut: () => of(''),
      };
      const never: Layer = {
        name: 'never',
        call:
          ({ perform }) =>
          (next) =>
          (call) =>
            perform(step).pipe(concatMap(() => next(call))),
      };
      const chats = sessions(agentOf(parts, never));
      return (who, options) => {
        gated(0).subscribe(() => chats.open(who).interrupt('Stop.'));
        return chats.open(who).call('?', options);
      };
    },
  },
  {
    name: 'interrupt() of a call without phases of its own',
    without: ['tool', 'preActing', 'postActing', 'phase'],
    share: (parts) => {
      const bare = parts.use.filter((layer) => !('turn' in layer));
      const chats = sessions(agentOf({ ...parts, model: stuck(parts.model), use: bare }));
      return (who, options) => {
        gated(0)
          .pipe(concatMap(() => gated(0)))
          .subscribe(() => chats.open(who).interrupt('Stop.'));
        return chats.open(who).call('?', options);
      };
    },
  },
  {
    name: 'interrupt() of a call with a sub-agent',
    without: ['tool'],
    isCut: true,
    isNested: 'partly',
    share: (parts) => {
      const inner = agentOf({ ...parts, model: stuck(parts.model) });
      const ask = agentTool(inner, { name: 'inner', description: 'Asks another agent.' });
      const chats = sessions(
        agentOf({
          ...parts,
          model: parts.asking({ inner: { user_prompt: '?' } }),
          tools: [ask, ...parts.tools],
        }),
      );
      return (who, options) => {
        gated(0)
          .pipe(concatMap(() => gated(0).pipe(delay(20))))
          .subscribe(() => chats.open(who).interrupt('Stop.'));
        return chats.open(who).call('?', options);
      };
    },
  },
  {
    name: 'interrupt() of a call with a slow journal',
    without: ['tool', 'preActing', 'postActing'],
    share: (parts) => {
      const store = createCallStore(slowCalls());
      const agent = agentOf({ ...parts, model: stuck(parts.model) }, journal(store));
      const chats = sessions(agent);
      return (who, options) => {
        gated(0)
          .pipe(delay(60))
          .subscribe(() => chats.open(who).interrupt('Stop.'));
        return chats.open(who).call('?', options);
      };
    },
  },
  {
    name: 'drain()',
    without: ['tool', 'preActing', 'postActing', 'postCall'],
    share: (parts) => {
      const drained = draining();
      const agent = agentOf({ ...parts, model: stuck(parts.model) }, drained);
      gated(0).subscribe(() => void drained.drain({ timeoutMs: 5 }));
      return (_, options) => agent.call('?', options).catch(() => undefined);
    },
  },
  {
    name: 'interruptOn()',
    without: ['tool', 'preActing', 'postActing'],
    share: (parts) =>
      layered(() => interruptOn(defer(() => gated('Stop.')).pipe(share())))({
        ...parts,
        model: stuck(parts.model),
      }),
  },
  {
    name: 'abort()',
    without: ['tool', 'preActing', 'postActing', 'postCall'],
    share: (parts) => {
      const agent = agentOf({ ...parts, model: stuck(parts.model) });
      const abort = new AbortController();
      gated(0)
        .pipe(concatMap(() => gated(0)))
        .subscribe(() => abort.abort());
      return (_, options) =>
        agent.call('?', { ...options, signal: abort.signal }).catch(() => undefined);
    },
  },
  {
    name: 'stream() that somebody else reads on',
    share: (parts) => {
      // Reads on when the consumer does.
      const dots = async function* (who: string): AsyncGenerator<ModelChunk> {
        for (let left = 200; left > 0; left -= 1) {
          parts.see('read', who);
          yield text('.');
          await Promise.resolve();
        }
      };
      const agentFor = (who: string) =>
        agentOf({
          ...parts,
          model: {
            ...parts.model,
            stream$: (request, context) =>
              concat(
                fromPull(() => dots(who), context.demand),
                parts.model.stream$(request, context),
              ),
          },
        });
      return async (who, options) => {
        const agent = agentFor(who);
        const events = agent.stream('?', options)[Symbol.asyncIterator]();
        await events.next();
        await ended(
          gated(0).pipe(
            mergeMap(async () => {
              let isDone = false;
              while (!isDone) isDone = (await events.next()).done === true;
            }),
          ),
        );
      };
    },
  },
  {
    name: 'parallel() and sequential()',
    share: (parts) => {
      const agent = agentOf(parts);
      const other = agentOf({ ...parts, model: slow(parts.model) });
      const team = asAgent(sequential(parallel(agent, other), agent), { name: 'team' });
      return (_, options) => team.call('?', options);
    },
  },
];

/** The waits of the core. */
export const kernelWaits: readonly Wait[] = [
  { name: 'nothing', share: layered() },
  ...traffic,
  ...sessionWaits,
  ...teamWaits,
  ...deciders,
  ...foreign,
  ...ends,
];
