import { describe, expect, it } from '@jest/globals';
import { lastValueFrom } from 'rxjs';
import { recordsOf, runUntil, stepsIn } from '../../journal/dying-driver.test-support.js';
import { type CallStoreDriver, inProcessCalls } from '../../journal/index.js';
import { createAgent, tool } from '../../index.js';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from '../../testing/index.js';
import { type Budget, budget, type BudgetOptions, sharedBudget } from './budget.js';
import { journalIn } from '../../journal/stored-calls.test-support.js';

/** Each request costs 100 tokens, and asks for a tool as long as it may. */
const runaway = (driver: CallStoreDriver, ...budgets: readonly Budget[]) => {
  const answer: ScriptedAnswer = ({ tools = [], toolChoice }) => [
    tools.length === 0 || toolChoice === 'none' ? text('So far.') : toolCall('spin'),
    { type: 'usage', usage: { inputTokens: 75, outputTokens: 25 } },
  ];
  const model = scriptedModel(...Array.from({ length: 20 }, () => answer));
  let runs = 0;
  const spin = tool({ name: 'spin', description: 'Spins.', run: () => `Again ${(runs += 1)}.` });
  return {
    agent: createAgent({
      model,
      tools: [spin],
      limits: { maxIterations: 50 },
      use: [journalIn(driver), ...budgets],
    }),
    spent: () => ({ tokens: model.requests.length * 100, toolCalls: runs }),
  };
};

const call$ = ({ agent }: ReturnType<typeof runaway>) => agent.call$('?', { callId: 'c' });

/** CI cuts at some of the records, `npm run test:all` at each. */
const stride = Math.min(4, Math.ceil(1 / Number(process.env['MILLRACE_RUNS'] ?? 1)));

describe('budgets of a resumed call', () => {
  it.each<BudgetOptions>([{ tokens: 300 }, { toolCalls: 4 }])(
    'C9, S6: %j ends it at the same step, and shared ones count nothing twice',
    async (options) => {
      const run$ = (driver: CallStoreDriver) => call$(runaway(driver, budget(options)));
      const expected = await lastValueFrom(run$(inProcessCalls()));
      const records = await recordsOf(run$);
      for (let cut = 1; cut < records; cut += stride) {
        const store = inProcessCalls();
        const shared = sharedBudget({ tokens: 10_000 });
        let before: ReturnType<typeof runaway> | undefined;
        runUntil(store, cut, (dying) => call$((before = runaway(dying, budget(options), shared))));
        if (!(await stepsIn(store)).includes('call')) continue;
        const after = runaway(store, budget(options), shared);
        // What a tool was doing when it all ended is not known, and does not count less for it.
        const { reason, iterations } = await journalIn(store).resume(after.agent, 'c');
        expect({ reason, iterations }).toEqual({
          reason: expected.reason,
          iterations: expected.iterations,
        });
        const [first, second] = [before?.spent() ?? { tokens: 0, toolCalls: 0 }, after.spent()];
        expect(shared.spent.tokens).toBe(first.tokens + second.tokens);
        expect(shared.spent.toolCalls).toBeLessThanOrEqual(expected.toolCalls.length);
      }
    },
  );
});
