// Fit for users: guards, limits, a context that fits, and two agents that share what a provider allows.
import { createAgent, isMillraceError, textOf } from 'millrace';
import { denyList, maxInputLength, ratePerUser } from 'millrace/guards';
import { scriptedModel, text } from 'millrace/testing';
import { limitConcurrency, sharedBudget } from 'millrace/traffic';
import { guarded } from '@millrace/presets';

const guards = [
  maxInputLength({ characters: 200 }),
  denyList(['password']),
  ratePerUser({ calls: 2 }),
];
const model = scriptedModel([text('A mill race carries water.')], [text('To the wheel.')]);
const desk = createAgent(guarded({ name: 'desk', model }, { guards }));

const ask = (question: string, userId: string): Promise<string> =>
  desk.call(question, { metadata: { userId } }).then(textOf, (error: unknown) => {
    return isMillraceError(error) ? `${error.code}: ${error.userMessage}` : 'unknown';
  });
for (const question of ['What is a mill race?', 'Your password?', 'Where to?', 'Why?']) {
  console.log(question, '→', await ask(question, 'ada'));
}

const limited = limitConcurrency(1);
const budget = sharedBudget({ tokens: 1_000 });
const usage = { inputTokens: 90, outputTokens: 10 };
const agents = ['reader', 'writer'].map((name) =>
  createAgent({
    name,
    model: limited(scriptedModel([text('Done.'), { type: 'usage', usage }])),
    use: [budget],
  }),
);
await Promise.all(agents.map((agent) => agent.call('Go on.')));
console.log('spent together:', budget.spent.tokens, 'tokens');
