// What an AI gateway does, in your process: a cache, a router, and a breaker around a provider that is down.
import { createAgent, fallback, MillraceError, only, textOf } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { byLength, cacheResponses, circuitBreaker, routeModels } from '@millrace/gateway';
import { throwError } from 'rxjs';

const overloaded$ = throwError(() => new MillraceError('server', 'Overloaded.'));
const down = { ...scriptedModel(overloaded$), name: 'down' };
const spare = { ...scriptedModel([text('Water.')], [text('To the wheel.')]), name: 'spare' };
const large = { ...scriptedModel([text('That was long.')]), name: 'large' };

// After one failure, the breaker asks this model no more for a minute.
const breaker = circuitBreaker({ minRequests: 1, openMs: 60_000 });
const small = fallback(breaker(down), spare);
const agent = createAgent({
  model: large,
  use: [
    cacheResponses(),
    routeModels({ models: { small, large }, by: byLength({ small: 50, large: 100_000 }) }),
  ],
});
agent.events$.pipe(only('modelChosen', 'modelFallback', 'cacheHit')).subscribe((event) => {
  if (event.type === 'modelChosen') console.log(`${event.by}: ${event.model}, ${event.why}`);
  else if (event.type === 'modelFallback') console.log(`${event.to} instead of ${event.from}`);
  else console.log(`from the cache: ${event.by}`);
});

const long = 'Tell me about mills. '.repeat(20);
for (const question of ['What is in it?', 'What is in it?', 'Where to?', long]) {
  console.log(textOf(await agent.call(question, { metadata: { userId: 'ada' } })));
}
console.log(`The model that is down got ${down.requests.length} request.`);
