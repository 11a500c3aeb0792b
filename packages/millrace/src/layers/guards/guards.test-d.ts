import { of } from 'rxjs';
import { guardAnswer, guardInput, guardResults } from './index.js';

guardInput(() => true);
guardInput(async ({ text }) => Promise.resolve(text !== ''));
guardInput(({ text }) => of({ allowed: text.length < 3, reason: 'too long' }));
guardResults(({ toolCall }) => toolCall.name === 'clock');
guardAnswer(() => ({ allowed: true }), { onReject: 'again' });

// @ts-expect-error To allow must be said.
guardInput(() => undefined);
// @ts-expect-error A text is no verdict.
guardInput(() => 'ok');
// @ts-expect-error A reason alone is none.
guardInput(() => ({ reason: 'fine' }));
// @ts-expect-error A check that forgets to answer in the end.
guardInput(({ text }) => {
  if (text === '') return false;
});
// @ts-expect-error A guard fails closed.
guardInput(() => true, { failOpen: true });
// @ts-expect-error A promise of nothing.
guardResults(async () => Promise.resolve());
