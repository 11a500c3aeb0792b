// A model that is down, one that stalls, one that answers: what happens is events, and the answer is one.
import { createAgent, fallback, MillraceError, only, retry, textOf, timeouts } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { NEVER, throwError } from 'rxjs';

// They stand for models of vendors, which bring a policy and time-outs of their own.
const overloaded$ = throwError(() => new MillraceError('server', 'Overloaded.'));
const down = { ...scriptedModel(overloaded$, overloaded$), name: 'down' };
const stalled = { ...scriptedModel(NEVER), name: 'stalled' };
const alive = { ...scriptedModel([text('Here I am.')]), name: 'alive' };

const agent = createAgent({
  model: fallback(
    retry(down, { attempts: 2, minMs: 10, jitter: 0 }),
    timeouts(stalled, { firstChunkMs: 20 }),
    alive,
  ),
});

agent.events$.pipe(only('modelRetry', 'modelFallback')).subscribe((event) => {
  const { message } = event.error;
  if (event.type === 'modelRetry') console.log(`${message} Again in ${event.waitMs} ms.`);
  else console.log(`${message} Now ${event.to} instead of ${event.from}.`);
});

console.log(textOf(await agent.call('Is anybody there?')));
