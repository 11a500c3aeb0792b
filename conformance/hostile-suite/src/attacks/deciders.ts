import {
  approval,
  type Approver,
  createAgent,
  type Layer,
  on,
  requireApproval,
  type Tool,
  tool,
  toolResults,
} from 'millrace';
import { createCallStore, inProcessCalls, journal, suspendBelow } from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import { inProcessSessions, keepSessions } from 'millrace/sessions';
import { agentTool } from 'millrace/teams';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { speculate } from '@millrace/gateway';
import { approveLater } from '@millrace/tools/approval';
import { codeActing } from '@millrace/tools/code-acting';
import { filter } from 'rxjs';
import { endOf } from '../driver/run-tool.js';
import { type Attack, scene } from '../scene.js';

/** A tool that pays, and the amounts that it has paid. */
interface Till {
  readonly paid: number[];
  readonly pay: Tool<{ amount: number }>;
}

const openTill = (): Till => {
  const paid: number[] = [];
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: jsonSchema({
      type: 'object',
      properties: { amount: { type: 'number' } },
      required: ['amount'],
    }),
    run: ({ amount }) => {
      paid.push(amount);
      return 'Paid.';
    },
  });
  return { paid, pay };
};

const paying = toolCall('pay', { amount: 5 }, 'p');
const amountOf = (input: Readonly<Record<string, unknown>>): number => Number(input['amount']);

/** A rule of the program: small amounts only. */
const policy: Approver = ({ input }) => amountOf(input) <= 10;
const vetoLarge = on(
  'preActing',
  filter(({ toolCall: { input } }) => amountOf(input) <= 10),
);
/** A person who raises the amount before agreeing. */
const raising: Approver = () => ({ approved: true, input: { amount: 1_000_000 } });
const refuse: Approver = ({ tool: name }) => name !== 'pay';

/** A program without types can return anything. */
const untyped =
  (verdict: unknown): Approver =>
  () =>
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- that is the attack
    verdict as never;

interface Guarded {
  readonly tools: readonly Tool[];
  readonly use?: readonly Layer[];
}

/** No order of deciders lets an amount through that one of them has not agreed to. */
const raisedPast =
  (guarded: (till: Till) => Guarded): Attack<undefined> =>
  async () => {
    const till = openTill();
    const model = scriptedModel([paying], [text('Done.')]);
    const end = await endOf(createAgent({ model, ...guarded(till) }));
    const wrong = till.paid.filter((amount) => amount > 10);
    if (wrong.length > 0) return `paid ${wrong.join()} (${end})`;
    return end === 'answer' ? undefined : `the call ended with ${end}`;
  };

/** Nothing is paid, whatever the model writes first. */
const paidAnyway =
  (
    guarded: (till: Till) => Guarded,
    answer: ScriptedAnswer = [paying],
    expected = 'answer',
  ): Attack<undefined> =>
  async () => {
    const till = openTill();
    const model = scriptedModel(answer, [text('Done.')]);
    const end = await endOf(createAgent({ model, ...guarded(till) }));
    if (till.paid.length > 0) return `paid ${till.paid.join()} (${end})`;
    return end === expected ? undefined : `the call ended with ${end}`;
  };

const vetoPay = on(
  'preActing',
  filter(({ toolCall: { name } }) => name !== 'pay'),
);
const early = speculate({ tools: ['pay'] });
const code = [
  toolCall('run_javascript', {
    code: 'return await tools.pay({ amount: 5 }).catch((error) => error.message)',
  }),
];

const belowParent = (use: readonly Layer[]): Attack<undefined> =>
  paidAnyway(
    ({ pay }) => {
      const model = scriptedModel([paying], [text('Done.')]);
      const clerk = createAgent({ name: 'clerk', model, tools: [pay] });
      return { tools: [agentTool(clerk, { description: 'Pays.' })], use };
    },
    [toolCall('clerk', { user_prompt: 'Pay.' })],
  );

/** A call waits for a person. A deploy removes the guard, and the person says no. */
const guardRemoved: Attack<undefined> = async () => {
  const { paid, pay } = openTill();
  const calls = journal(createCallStore(inProcessCalls()));
  const store = inProcessSessions();
  const opened = (tools: readonly Tool[], ...script: readonly ScriptedAnswer[]) =>
    keepSessions(
      createAgent({
        name: 'clerk',
        model: scriptedModel(...script),
        tools,
        use: [calls, suspendBelow],
      }),
      store,
      { journal: calls },
    ).open('s');
  const before = await opened([approveLater(pay)], [paying]);
  const { suspensions = [] } = await before.call('Pay.');
  await before.close();
  const id = suspensions[0]?.toolCall.id ?? '';
  if (id === '') return 'nothing was suspended';
  const after = await opened([pay], [text('Done.')]);
  await after
    .call(toolResults({ [id]: { approved: false, reason: 'No.' } }))
    .catch(() => undefined);
  return paid.length === 0 ? undefined : `paid ${paid.join()}`;
};

export const deciderScenes = [
  scene({
    rule: 'I20',
    promise: 'A tool runs with an input that every approver and veto has agreed to',
    open: () => undefined,
    attacks: {
      'tool (rule), then tool (person who edits)': raisedPast(({ pay }) => ({
        tools: [requireApproval(requireApproval(pay, policy), raising)],
      })),
      'tool (person who edits), then tool (rule)': raisedPast(({ pay }) => ({
        tools: [requireApproval(requireApproval(pay, raising), policy)],
      })),
      'tool (rule), layer (person who edits)': raisedPast(({ pay }) => ({
        tools: [requireApproval(pay, policy)],
        use: [approval(raising)],
      })),
      'tool (person who edits), layer (rule)': raisedPast(({ pay }) => ({
        tools: [requireApproval(pay, raising)],
        use: [approval(policy)],
      })),
      'layers: rule, person who edits': raisedPast(({ pay }) => ({
        tools: [pay],
        use: [approval(policy), approval(raising)],
      })),
      'layers: person who edits, rule': raisedPast(({ pay }) => ({
        tools: [pay],
        use: [approval(raising), approval(policy)],
      })),
      'a veto at preActing, layer (person who edits)': raisedPast(({ pay }) => ({
        tools: [pay],
        use: [vetoLarge, approval(raising)],
      })),
      'a veto at preActing, tool (person who edits)': raisedPast(({ pay }) => ({
        tools: [requireApproval(pay, raising)],
        use: [vetoLarge],
      })),
    },
  }),
  scene({
    rule: 'T12',
    promise: 'A tool call that was refused does not run, by any detour',
    open: () => undefined,
    attacks: {
      'speculation before requireApproval': paidAnyway(({ pay }) => ({
        tools: [requireApproval(pay, refuse)],
        use: [early],
      })),
      'speculation before an approval layer': paidAnyway(({ pay }) => ({
        tools: [pay],
        use: [early, approval(refuse)],
      })),
      'speculation after an approval layer': paidAnyway(({ pay }) => ({
        tools: [pay],
        use: [approval(refuse), early],
      })),
      'a sub-agent below an approval layer': belowParent([approval(refuse)]),
      'a sub-agent below a veto that it inherits': belowParent([{ ...vetoPay, inherit: true }]),
      'code before an approval layer': paidAnyway(
        ({ pay }) => ({ tools: [pay], use: [codeActing(), approval(refuse)] }),
        code,
      ),
      'code after an approval layer': paidAnyway(
        ({ pay }) => ({ tools: [pay], use: [approval(refuse), codeActing()] }),
        code,
      ),
      'code and requireApproval': paidAnyway(
        ({ pay }) => ({ tools: [requireApproval(pay, refuse)], use: [codeActing()] }),
        code,
      ),
      'code and a veto': paidAnyway(
        ({ pay }) => ({ tools: [pay], use: [codeActing(), vetoPay] }),
        code,
      ),
      ...Object.fromEntries(
        ['yes', 1, 'true', {}, { approved: 'true' }, { approved: 1 }, [], null].map((verdict) => [
          `the verdict ${JSON.stringify(verdict)}`,
          // The program is wrong, not the model. A list is a source, here of no verdict.
          paidAnyway(
            ({ pay }) => ({ tools: [requireApproval(pay, untyped(verdict))] }),
            [paying],
            Array.isArray(verdict) ? 'answer' : 'config',
          ),
        ]),
      ),
      'a denial after the guard was removed by a deploy': guardRemoved,
    },
  }),
];
