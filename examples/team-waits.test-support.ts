import { type Agent, createAgent, type Input, type Model, tool, transient } from 'millrace';
import { finish, scriptedModel, text, toolCall } from 'millrace/testing';
import { guardAnswer, guardResults } from 'millrace/guards';
import {
  calls$,
  createCallStore,
  draining,
  inProcessCalls,
  journal,
  type RecordSeal,
} from 'millrace/journal';
import { asAgent, createStep, hub, supervisor } from 'millrace/teams';
import { limitConcurrency } from 'millrace/traffic';
import { codeActing } from '@millrace/tools/code-acting';
import {
  concat,
  delay,
  elementAt,
  firstValueFrom,
  ignoreElements,
  map,
  NEVER,
  of,
  type OperatorFunction,
  Subject,
} from 'rxjs';
import {
  agentOf,
  type Ask,
  gated,
  gating,
  kinds,
  type Parts,
  user,
  users,
  type Wait,
} from './async-context.test-support.js';
import { ended, layered, slow, slowCalls } from './waits.test-support.js';

/** One pipeline for the questions of all users. */
const piping =
  (toOperator: (agent: Agent) => OperatorFunction<Input, unknown>) =>
  (parts: Parts): Ask => {
    const questions$ = new Subject<string>();
    const replies$ = new Subject<unknown>();
    const agent = agentOf({ ...parts, model: slow(parts.model) });
    questions$.pipe(toOperator(agent)).subscribe(replies$);
    let asked = 0;
    return async (who) => {
      const place = asked;
      asked += 1;
      const reply = firstValueFrom(replies$.pipe(elementAt(place)));
      questions$.next(who);
      await reply;
    };
  };

const calls: readonly Wait[] = [
  {
    name: 'asOperator() of a pipeline for several users',
    share: piping((agent) => agent.asOperator()),
  },
  {
    name: 'createStep() in a pipeline for several users',
    share: piping((agent) => createStep((input, options) => agent.call$(input, options))),
  },
  {
    name: 'a call that somebody else began',
    also: ['open'],
    share: async (parts) => {
      const seal: RecordSeal = {
        seal: (record) => record,
        open: (record, callId) => {
          parts.see('open', callId.split('-')[0] ?? '');
          return record;
        },
      };
      const durable = journal(createCallStore(slowCalls(), { seal }));
      const drained = draining();
      const { model, tools } = parts;
      const before = createAgent({
        model: unanswering,
        tools: [...tools],
        use: [durable, drained],
      });
      const resumed = agentOf({ ...parts, model: slow(model) }, durable);
      const begun = users.map((who, index) =>
        user.run('somebody else', () =>
          before.call('?', { callId: `${who}-${index}`, metadata: { userId: who } }).catch(() => 0),
        ),
      );
      await ended(gated(0).pipe(delay(50)));
      await drained.drain({ timeoutMs: 0 });
      await Promise.all(begun);
      return (_, { callId }) => durable.resume(resumed, callId);
    },
  },
];

const sealed: Wait = {
  name: 'sealed records that are listed',
  without: kinds,
  also: ['open'],
  share: async (parts) => {
    const driver = inProcessCalls();
    const list$: typeof driver.list$ = (...given) => gating(driver.list$(...given));
    let isListed = false;
    const seal: RecordSeal = {
      seal: (record) => record,
      open: (record) => {
        if (isListed) parts.seeShared('open');
        return record;
      },
    };
    const store = createCallStore({ ...driver, list$ }, { seal });
    const use = [journal(store)];
    await createAgent({ model: scriptedModel([text('Done.')]), use }).call('?');
    isListed = true;
    return () => ended(calls$(store));
  },
};

const unanswering: Model = { name: 'unanswering', stream$: () => NEVER };

const tools: readonly Wait[] = [
  {
    name: 'tools that run alone',
    share: (parts) => {
      const alone = parts.tools.map((it) => ({ ...it, exclusive: true }));
      const wait = tool({ name: 'wait', description: 'Waits.', run: () => gated('x') });
      return layered()({
        ...parts,
        model: parts.asking(['wait', 'who', 'wait', 'who']),
        tools: [wait, ...alone],
      });
    },
  },
  {
    name: 'a tool that answers the same call once',
    share: (parts) => {
      const same = tool({
        name: 'same',
        description: 'Waits.',
        dedupe: true,
        run: () => gated('x'),
      });
      return layered()({
        ...parts,
        model: parts.asking(['same', 'who', 'same']),
        tools: [same, ...parts.tools],
      });
    },
  },
  {
    name: 'a tool that is tried again',
    share: (parts) => {
      let runs = 0;
      const again = tool({
        name: 'again',
        description: 'Fails first.',
        retry: { backoffMs: 1 },
        run: () =>
          gated('x').pipe(
            map((value) => {
              if ((runs += 1) <= 3) throw transient('!');
              return value;
            }),
          ),
      });
      return layered()({
        ...parts,
        model: parts.asking('again'),
        tools: [again, ...parts.tools],
      });
    },
  },
  {
    name: 'tools that code calls',
    isNested: 'partly',
    share: (parts) =>
      layered(() => [codeActing()])({
        ...parts,
        model: {
          ...parts.model,
          stream$: (request, context) => {
            const isAsked = request.messages.some(({ role }) => role === 'tool');
            const code = toolCall('run_javascript', { code: 'return await tools.who({})' });
            return isAsked
              ? parts.model.stream$(request, context)
              : concat(
                  parts.model.stream$(request, context).pipe(ignoreElements()),
                  of(code, finish()),
                );
          },
        },
      }),
  },
  { name: 'guardAnswer()', share: layered(() => [guardAnswer(() => gated(true))].flat()) },
  { name: 'guardResults()', share: layered(() => [guardResults(() => gated(true))].flat()) },
];

const teams: readonly Wait[] = [
  {
    name: 'supervisor()',
    isNested: 'partly',
    share: (parts) => {
      const agent = agentOf({ ...parts, model: limitConcurrency(1)(parts.model) });
      const leader = supervisor({
        model: parts.asking({ helper: { user_prompt: '?' } }),
        agents: [{ agent, name: 'helper', description: 'Helps.' }],
        use: [...parts.use],
        tools: [...parts.tools],
      });
      return (_, options) => leader.call('?', options);
    },
  },
  {
    name: 'hub()',
    isNested: 'partly',
    share: (parts) => {
      const agent = agentOf({ ...parts, model: slow(parts.model) });
      const other = createAgent({
        name: 'other',
        model: parts.model,
        tools: parts.tools,
        use: parts.use,
      });
      const talk = asAgent(hub({ agents: [agent, other] }), { name: 'talk' });
      return (_, options) => talk.call('?', options);
    },
  },
];

/** The waits of calls with several agents, and of tools. */
export const teamWaits: readonly Wait[] = [...calls, sealed, ...tools, ...teams];
