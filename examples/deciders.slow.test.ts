import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  approval,
  type Approver,
  createAgent,
  interruptOn,
  type Layer,
  type ModelRequest,
  on,
  requireApproval,
  type Tool,
  tool,
} from 'millrace';
import { type CallStoreDriver, createCallStore, inProcessCalls, journal } from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { speculate } from '@millrace/gateway';
import { codeActing } from '@millrace/tools/code-acting';
import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  lastValueFrom,
  map,
  NEVER,
  of,
  Subject,
  takeUntil,
  timer,
} from 'rxjs';

const input = jsonSchema({
  type: 'object',
  properties: { n: { type: 'number', maximum: 90 } },
  required: ['n'],
});
type Said = { readonly n?: number; readonly name?: string } | false;

/** Says the same of the same input, each time it is asked: accepts, edits, renames or refuses it. */
const said$ = fc.oneof(
  { weight: 8, arbitrary: fc.constant<Said>({}) },
  { weight: 4, arbitrary: fc.record({ n: fc.integer({ min: 0, max: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ name: fc.constantFrom('pay', 'refund') }) },
  { weight: 1, arbitrary: fc.constant<Said>(false) },
);
const decider$ = fc.array(said$, { minLength: 5, maxLength: 5 });
const play$ = fc.record({
  how: fc.constantFrom('native', 'speculating', 'in code'),
  interceptors: fc.array(decider$, { maxLength: 2 }),
  pay: fc.array(decider$, { maxLength: 2 }),
  refund: fc.array(decider$, { maxLength: 2 }),
  layers: fc.array(decider$, { maxLength: 2 }),
  start: fc.integer({ min: 0, max: 4 }),
  isInterrupted: fc.boolean(),
  /** The process ends before the write of this number. */
  diesAt: fc.oneof(fc.constant(Infinity), fc.integer({ min: 2, max: 9 })),
});

const numberIn = (value: unknown): number => Number(Object(value)['n'] as unknown);
const isOwn = (name: string): boolean => name === 'pay' || name === 'refund';

/** What each decider put out last, and what ran. */
const watched = () => {
  const accepted = new Map<string, string>();
  const ran: { readonly what: string; readonly accepted: ReadonlyMap<string, string> }[] = [];
  const ask = (id: string, table: readonly Said[], name: string, n: number): Said => {
    const said = table[n] ?? false;
    if (said !== false) accepted.set(id, `${said.name ?? name} ${said.n ?? n}`);
    return said;
  };
  const approver =
    (id: string, table: readonly Said[]): Approver =>
    ({ tool: name, input: given }) => {
      if (!isOwn(name)) return true;
      const said = ask(id, table.map(withoutName), name, numberIn(given));
      if (said === false || said.n === undefined) return said !== false;
      return { approved: true, input: { n: said.n } };
    };
  const interceptor = (id: string, table: readonly Said[]): Layer =>
    on(
      'preActing',
      concatMap((event) => {
        const { toolCall: asked } = event;
        if (!isOwn(asked.name)) return of(event);
        const said = ask(id, table, asked.name, numberIn(asked.input));
        if (said === false) return EMPTY;
        const { n = numberIn(asked.input), name = asked.name } = said;
        return of({ ...event, toolCall: { ...asked, name, input: { n } } });
      }),
      { name: id },
    );
  const paying = (name: string, tables: readonly (readonly Said[])[]): Tool =>
    tables.reduce<Tool>(
      (own, table, index) => requireApproval(own, approver(`${name} ${index}`, table)),
      tool({
        name,
        description: 'Pays.',
        input,
        run: ({ n }) => {
          ran.push({ what: `${name} ${n}`, accepted: new Map(accepted) });
          return `Paid ${n}.`;
        },
      }),
    );
  return { ran, approver, interceptor, paying };
};

const withoutName = (said: Said): Said =>
  said === false || said.n === undefined ? said !== false && {} : { n: said.n };

/** A process that ends before a write: what comes after is lost. */
const dyingAt = (driver: CallStoreDriver, write: number, dead$: Subject<void>): CallStoreDriver => {
  let left = write;
  return {
    ...driver,
    claim$: (callId) =>
      concat(driver.claim$(callId).pipe(takeUntil(dead$)), NEVER).pipe(
        map((claim) => ({
          append$: (records) =>
            defer(() => {
              left -= 1;
              if (left > 0) return claim.append$(records);
              dead$.next();
              return NEVER;
            }),
        })),
      ),
  };
};

it('I20: what runs is what each decider accepted last: speculating, in code, interrupted or resumed', async () => {
  const counts = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(play$, async (play) => {
      const { how, interceptors, pay, refund, layers, start, isInterrupted, diesAt } = play;
      const w = watched();
      const asked =
        how === 'in code'
          ? toolCall('run_javascript', { code: `return await tools.pay({ n: ${start} })` }, 'c')
          : toolCall('pay', { n: start }, 'c');
      const agentOf = (driver: CallStoreDriver) => {
        const durable = journal(createCallStore(driver));
        const use = [
          durable,
          interruptOn(isInterrupted ? timer(0) : NEVER),
          ...(how === 'speculating' ? [speculate({ tools: ['pay', 'refund'] })] : []),
          ...(how === 'in code' ? [codeActing({ timeoutMs: 60_000 })] : []),
          ...interceptors.map((table, index) => w.interceptor(`interceptor ${index}`, table)),
          ...layers.map((table, index) => approval(w.approver(`layer ${index}`, table))),
        ];
        const tools = [w.paying('pay', pay), w.paying('refund', refund)];
        const answer = ({ messages }: ModelRequest) =>
          messages.at(-1)?.role === 'tool' ? [text('Done.')] : [asked];
        const model = scriptedModel(answer, answer);
        return { durable, agent: createAgent({ model, tools, use }) };
      };
      const driver = inProcessCalls();
      const dead$ = new Subject<void>();
      let hasDied = false;
      dead$.subscribe(() => (hasDied = true));
      const first = agentOf(dyingAt(driver, diesAt, dead$));
      const call$ = first.agent.call$('Pay.', { callId: 'a' });
      await lastValueFrom(call$.pipe(takeUntil(dead$)), { defaultValue: undefined });
      if (hasDied) {
        const again = agentOf(driver);
        const resumed$ = again.durable.resume$(again.agent, 'a').pipe(
          // Nothing was recorded yet.
          catchError((error: unknown) => {
            if (isUnknown(error)) return EMPTY;
            throw error;
          }),
        );
        await lastValueFrom(resumed$, { defaultValue: undefined });
      }

      // A tool that may run early has no effect.
      if (how !== 'speculating') expect(w.ran.length).toBeLessThanOrEqual(1);
      const key = `${how}${hasDied ? ', resumed' : ''}: ${w.ran.length === 0 ? 'not run' : 'ran'}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
      for (const { what, accepted } of w.ran) {
        const [name = ''] = what.split(' ');
        const deciders = [
          ...interceptors.map((_, index) => `interceptor ${index}`),
          ...(name === 'pay' ? pay : refund).map((_, index) => `${name} ${index}`),
          ...layers.map((_, index) => `layer ${index}`),
        ];
        expect(deciders.map((id) => [id, accepted.get(id)])).toEqual(
          deciders.map((id) => [id, what]),
        );
      }
    }),
    { numRuns: 3_000 },
  );
  if (process.env['COUNTS'] !== undefined) console.log(counts);
  for (const how of ['native', 'speculating', 'in code'])
    for (const end of ['ran', 'not run'])
      expect([...counts.keys()].some((key) => key.startsWith(how) && key.endsWith(end))).toBe(true);
}, 240_000);

const isUnknown = (error: unknown): boolean => Object(error)['code'] === 'invalidResume';
