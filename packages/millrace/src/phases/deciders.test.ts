import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { filter, firstValueFrom, map, NEVER, of, timer } from 'rxjs';
import {
  type AgentEvent,
  approval,
  type ApprovalRequest,
  type Approver,
  createAgent,
  interruptOn,
  type Layer,
  on,
  requireApproval,
  type Tool,
  tool,
} from '../index.js';
import { createCallStore, inProcessCalls, journal } from '../journal/index.js';
import { jsonSchema } from '../schema/index.js';
import { record, scriptedModel, text, toolCall } from '../testing/index.js';

const input = jsonSchema({
  type: 'object',
  properties: { n: { type: 'number', maximum: 90 } },
  required: ['n'],
});

/** Accepts, edits, renames or refuses an input. */
type Rule = (name: string, n: number) => Partial<{ n: number; name: string }> | false;

const numberIn = (value: unknown): number => Number(Object(value)['n'] as unknown);

/** The inputs that each decider put out, and those that ran. */
const watched = () => {
  const accepted: Record<string, string[]> = {};
  const ran: string[] = [];
  const put = (id: string, name: string, n: number): void => {
    (accepted[id] ??= []).push(`${name} ${n}`);
  };
  const approver =
    (id: string, rule: Rule): Approver =>
    ({ tool: name, input: given }) => {
      const n = numberIn(given);
      const said = rule(name, n);
      if (said === false) return false;
      put(id, name, said.n ?? n);
      return said.n === undefined ? true : of({ approved: true, input: { n: said.n } });
    };
  const interceptor = (id: string, rule: Rule): Layer =>
    on(
      'preActing',
      (event$) =>
        event$.pipe(
          map((event) => {
            const { toolCall: asked } = event;
            const said = rule(asked.name, numberIn(asked.input));
            if (said === false) return undefined;
            const edited = { n: said.n ?? numberIn(asked.input) };
            put(id, said.name ?? asked.name, edited.n);
            return {
              ...event,
              toolCall: { ...asked, name: said.name ?? asked.name, input: edited },
            };
          }),
          filter((event) => event !== undefined),
        ),
      { name: id },
    );
  const paying = (name: string, ...approvers: readonly Approver[]): Tool =>
    approvers.reduce<Tool>(
      (own, each) => requireApproval(own, each),
      tool({
        name,
        description: 'Pays.',
        input,
        run: ({ n }) => {
          ran.push(`${name} ${n}`);
          return `Paid ${n}.`;
        },
      }),
    );
  return { accepted, ran, approver, interceptor, paying };
};

const paysOnce = (n = 5) => scriptedModel([toolCall('pay', { n }, 'c1')], [text('Done.')]);

const play = (
  tools: readonly Tool[],
  use: readonly Layer[],
  n = 5,
): Promise<readonly AgentEvent[]> =>
  record(createAgent({ model: paysOnce(n), tools, use }).stream$('Pay.'));

const ofType = <Type extends AgentEvent['type']>(events: readonly AgentEvent[], type: Type) =>
  events.filter((event): event is Extract<AgentEvent, { type: Type }> => event.type === type);

const policy: Rule = (_, n) => n <= 10 && {};
const raises: Rule = () => ({ n: 80 });

describe('I20: what runs is what every decider saw', () => {
  it.each<
    [string, (w: ReturnType<typeof watched>) => readonly [readonly Tool[], readonly Layer[]]]
  >([
    [
      'two approvers of the tool',
      (w) => [[w.paying('pay', w.approver('a', policy), w.approver('b', raises))], []],
    ],
    [
      'in the other order',
      (w) => [[w.paying('pay', w.approver('b', raises), w.approver('a', policy))], []],
    ],
    [
      'the tool, then a layer',
      (w) => [[w.paying('pay', w.approver('a', policy))], [approval(w.approver('b', raises))]],
    ],
    [
      'a layer after the tool',
      (w) => [[w.paying('pay', w.approver('b', raises))], [approval(w.approver('a', policy))]],
    ],
    [
      'two layers',
      (w) => [
        [w.paying('pay')],
        [approval(w.approver('a', policy)), approval(w.approver('b', raises))],
      ],
    ],
    [
      'two layers in the other order',
      (w) => [
        [w.paying('pay')],
        [approval(w.approver('b', raises)), approval(w.approver('a', policy))],
      ],
    ],
    [
      'a veto',
      (w) => [[w.paying('pay')], [w.interceptor('a', policy), approval(w.approver('b', raises))]],
    ],
    [
      'a veto before an edit by another interceptor',
      (w) => [[w.paying('pay')], [w.interceptor('a', policy), w.interceptor('b', raises)]],
    ],
  ])('refuses an edit that the policy does not allow: %s', async (_, make) => {
    const w = watched();
    const events = await play(...make(w));
    expect(w.ran).toEqual([]);
    expect(ofType(events, 'preActing')).toHaveLength(1);
    expect(ofType(events, 'postActing')).toHaveLength(1);
  });

  it('asks again those that saw another input, and never about an edit of their own', async () => {
    const w = watched();
    const asked: [string, number, number][] = [];
    const noted =
      (name: string, edit?: number): Approver =>
      ({ input: given, round }: ApprovalRequest) => {
        asked.push([name, numberIn(given), round]);
        return edit === undefined ? true : { approved: true, input: { n: edit } };
      };
    const events = await play(
      [w.paying('pay', noted('tool'))],
      [w.interceptor('seen', () => ({})), approval(noted('person', 7))],
    );
    expect(asked).toEqual([
      ['tool', 5, 1],
      ['person', 5, 1],
      ['tool', 7, 2],
    ]);
    expect(w.accepted['seen']).toEqual(['pay 5', 'pay 7']);
    expect(w.ran).toEqual(['pay 7']);
    expect(ofType(events, 'preActing')).toMatchObject([{ toolCall: { input: { n: 5 } } }]);
    expect(ofType(events, 'inputEdited')).toMatchObject([
      { from: { input: { n: 5 } }, to: { input: { n: 7 } }, by: 'approval' },
    ]);
    expect(ofType(events, 'approvalRequested').map(({ round }) => round)).toEqual([1, 1, 2]);
    expect(ofType(events, 'approvalDecided').map(({ round }) => round)).toEqual([1, 1, 2]);
    expect(ofType(events, 'postActing')).toMatchObject([{ toolCall: { input: { n: 7 } } }]);
  });

  it('takes an input as shown, in any order of keys, for no edit', async () => {
    const w = watched();
    const same: Approver = ({ input: given }) => ({
      approved: true,
      input: Object.fromEntries(Object.entries(given).reverse()),
    });
    const events = await play([w.paying('pay', same, same)], []);
    expect(ofType(events, 'inputEdited')).toEqual([]);
    expect(ofType(events, 'approvalRequested')).toHaveLength(2);
    expect(w.ran).toEqual(['pay 5']);
  });

  it('names those who keep editing', async () => {
    const w = watched();
    const adds: Rule = (_, n) => ({ n: n + 1 });
    const events = await play(
      [w.paying('pay')],
      [w.interceptor('one', adds), w.interceptor('two', adds)],
    );
    expect(w.ran).toEqual([]);
    expect(ofType(events, 'inputEdited')).toHaveLength(9);
    const [after] = ofType(events, 'postActing');
    expect(after?.result).toMatchObject({
      content: [{ text: expect.stringMatching(/edited more than 8 times, by one, two\.$/) }],
      isError: true,
    });
  });

  it('asks the approvers of the tool that a call is renamed to, not those of the former one', async () => {
    const w = watched();
    const tools = [
      w.paying(
        'pay',
        w.approver('pay', () => ({})),
      ),
      w.paying('refund', w.approver('refund', policy)),
    ];
    const renames: Rule = () => ({ name: 'refund' });
    await play(tools, [w.interceptor('renames', renames)]);
    expect(w.accepted).toEqual({ renames: ['refund 5'], refund: ['refund 5'] });
    expect(w.ran).toEqual(['refund 5']);
    await play(tools, [w.interceptor('renames', renames)], 50);
    expect(w.ran).toEqual(['refund 5']);
  });

  it('validates each edit, and refuses one that is not JSON', async () => {
    const w = watched();
    await play([w.paying('pay')], [w.interceptor('a', () => ({ n: 91 }))]);
    await play([w.paying('pay')], [approval(() => ({ approved: true, input: { n: 91 } }))]);
    await play([w.paying('pay')], [approval(() => ({ approved: true, input: { n: 9n } }))]);
    expect(w.ran).toEqual([]);
  });

  it('records the decisions in the one intent, and asks none of them after it', async () => {
    const w = watched();
    const driver = inProcessCalls();
    const kept = journal(createCallStore(driver));
    const agent = createAgent({
      model: paysOnce(),
      tools: [
        w.paying(
          'pay',
          w.approver('tool', () => ({})),
        ),
      ],
      use: [
        kept,
        w.interceptor('first', () => ({})),
        approval(w.approver('layer', () => ({ n: 7 }))),
      ],
    });
    await agent.call('Pay.', { callId: 'c' });
    const records = await firstValueFrom(driver.read$('c'));
    const intents = records.filter(({ text: it }) => it.includes('decidedBy'));
    expect(intents).toHaveLength(1);
    expect(JSON.parse(intents[0]?.text ?? '')).toMatchObject({
      toolCall: { input: { n: 7 } },
      decidedBy: [
        { name: 'first', edited: false, round: 1 },
        { name: 'validation', edited: false, round: 1 },
        { edited: false, round: 1 },
        { edited: true, round: 1 },
        { name: 'first', edited: false, round: 2 },
        { name: 'validation', edited: false, round: 2 },
        { edited: false, round: 2 },
      ],
    });
    const before = JSON.stringify(w.accepted);
    await kept.resume(agent, 'c');
    expect(JSON.stringify(w.accepted)).toBe(before);
    expect(w.ran).toEqual(['pay 7']);
  });

  it('holds for random deciders, edits, renames, vetoes and interrupts', async () => {
    const tables = fc.array(
      fc.oneof(
        { weight: 6, arbitrary: fc.constant({}) },
        { weight: 2, arbitrary: fc.record({ n: fc.integer({ min: 0, max: 4 }) }) },
        { weight: 1, arbitrary: fc.constant(false as const) },
      ),
      { minLength: 5, maxLength: 5 },
    );
    /** A decider that always says the same of the same input. */
    const ruleOf =
      (table: readonly (Partial<{ n: number; name: string }> | false)[]): Rule =>
      (_, n) =>
        table[n] ?? false;
    const renaming = fc.array(fc.constantFrom(undefined, 'pay', 'refund'), {
      minLength: 5,
      maxLength: 5,
    });
    const counts = { ran: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          interceptors: fc.array(fc.tuple(tables, renaming), { maxLength: 3 }),
          pay: fc.array(tables, { maxLength: 2 }),
          refund: fc.array(tables, { maxLength: 2 }),
          layers: fc.array(tables, { maxLength: 2 }),
          start: fc.integer({ min: 0, max: 4 }),
          isInterrupted: fc.boolean(),
        }),
        async ({ interceptors, pay, refund, layers, start, isInterrupted }) => {
          const w = watched();
          const approversOf = (id: string, all: readonly (typeof pay)[number][]) =>
            all.map((table, index) => w.approver(`${id} ${index}`, ruleOf(table)));
          await play(
            [
              w.paying('pay', ...approversOf('pay', pay)),
              w.paying('refund', ...approversOf('refund', refund)),
            ],
            [
              ...interruptOn(isInterrupted ? timer(0) : NEVER),
              ...interceptors.map(([table, names], index) =>
                w.interceptor(`interceptor ${index}`, (name, n) => {
                  const said = ruleOf(table)(name, n);
                  const other = names[n];
                  return said !== false && other !== undefined ? { ...said, name: other } : said;
                }),
              ),
              ...approversOf('layer', layers).map((each) => approval(each)),
            ],
            start,
          );
          counts[w.ran.length > 0 ? 'ran' : 'refused'] += 1;
          expect(w.ran.length).toBeLessThanOrEqual(1);
          for (const ran of w.ran) {
            const [name = ''] = ran.split(' ');
            const asked = [
              ...interceptors.map((_, index) => `interceptor ${index}`),
              ...(name === 'pay' ? pay : refund).map((_, index) => `${name} ${index}`),
              ...layers.map((_, index) => `layer ${index}`),
            ];
            for (const id of asked) expect([id, w.accepted[id]?.at(-1)]).toEqual([id, ran]);
          }
        },
      ),
      { numRuns: 400 },
    );
    expect(counts.ran).toBeGreaterThan(0);
    expect(counts.refused).toBeGreaterThan(0);
  });
});
