import {
  type AgentOptions,
  approval,
  createAgent,
  interruptOn,
  logEvents,
  on,
  prepare,
  requireApproval,
  tool,
  transformChunks,
} from 'millrace';
import { guardAnswer, guardInput, guardResults } from 'millrace/guards';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { map, Observable } from 'rxjs';
import { endOf } from '../driver/run-tool.js';
import { type Attack, scene } from '../scene.js';

const hostileProxy = (): object => {
  const fail = (): never => {
    throw new Error('a trap');
  };
  return new Proxy({}, { get: fail, has: fail, ownKeys: fail, getPrototypeOf: fail });
};

/** What a callback throws: the worst first. */
const thrown: Readonly<Record<string, () => never>> = {
  'an error': () => {
    throw new Error('boom');
  },
  nothing: () => {
    // eslint-disable-next-line @typescript-eslint/only-throw-error -- that is the attack
    throw undefined;
  },
  'an object without a prototype': () => {
    throw Object.create(null);
  },
  'a proxy': () => {
    // eslint-disable-next-line @typescript-eslint/only-throw-error -- that is the attack
    throw hostileProxy();
  },
  'a symbol': () => {
    // eslint-disable-next-line @typescript-eslint/only-throw-error -- that is the attack
    throw Symbol('boom');
  },
};

type Fail = () => never;
type Options = Partial<Pick<AgentOptions, 'tools' | 'use'>>;

const go = tool({ name: 'go', description: 'Goes.', run: () => 'Gone.' });
const going = (run: () => unknown): Options => ({
  tools: [tool({ name: 'go', description: 'Goes.', run })],
});
const using = (...use: NonNullable<Options['use']>): Options => ({ use });

/** Every place in which a program can throw. */
const places: Readonly<Record<string, (fail: Fail) => Options>> = {
  'a tool': (fail) => going(() => fail()),
  'a tool that is a promise': (fail) => going(() => Promise.resolve().then(fail)),
  'a tool that is an Observable': (fail) => going(() => new Observable(() => fail())),
  'the end of a tool': (fail) =>
    going(
      () =>
        new Observable((subscriber) => {
          subscriber.next('Gone.');
          subscriber.complete();
          return fail;
        }),
    ),
  'a result in JSON': (fail) => going(() => ({ toJSON: fail })),
  'a field of a result': (fail) =>
    going(() => ({
      get field() {
        return fail();
      },
    })),
  'an approver': (fail) => ({ tools: [requireApproval(go, fail)] }),
  'an approval layer': (fail) => using(approval(fail)),
  'a veto': (fail) => using(on('preActing', map(fail))),
  'an interceptor of answers': (fail) => using(on('postReasoning', map(fail))),
  'an interceptor of calls': (fail) => using(on('postCall', map(fail))),
  'a preparation': (fail) => using(prepare(map(fail))),
  'a transform of chunks': (fail) => using(transformChunks(() => fail())),
  'a guard of input': (fail) => using(guardInput(fail)),
  'a guard of results': (fail) => using(guardResults(fail)),
  'a guard of answers': (fail) => using(guardAnswer(fail)),
  'a logger': (fail) => using(logEvents({ debug: fail, info: fail, warn: fail, error: fail })),
  'an interrupt': (fail) => using(interruptOn(new Observable(() => fail()))),
};

/** Ends with a reply or a typed error; the next call of the process is not affected. */
const throwing =
  (place: (fail: Fail) => Options): Attack<unknown> =>
  async () => {
    const ends: string[] = [];
    for (const [what, fail] of Object.entries(thrown)) {
      const model = scriptedModel([text('I go.'), toolCall('go', {}, 'g')], [text('Done.')]);
      const agent = createAgent({ model, tools: [go], ...place(fail) });
      ends.push(`${what}: ${await endOf(agent)}`);
    }
    const untyped = ends.filter((end) => end.includes(': untyped'));
    return untyped.length === 0 ? undefined : untyped.join(', ');
  };

/** A subscriber of `events$` that throws: it is reported once, and the call and other subscribers go their way. */
const subscriber: Attack<unknown> = async () => {
  for (const [what, fail] of Object.entries(thrown)) {
    const model = scriptedModel([text('I go.'), toolCall('go', {}, 'g')], [text('Done.')]);
    const agent = createAgent({ model, tools: [go] });
    const seen: string[] = [];
    // eslint-disable-next-line rxjs-x/no-ignored-error -- that is the attack
    agent.events$.subscribe(fail);
    agent.events$.subscribe({
      next: ({ type }) => seen.push(type),
      error: () => seen.push('error'),
    });
    const end = await endOf(agent);
    if (end !== 'answer') return `${what}: the call ended with ${end}`;
    if (!seen.includes('postCall')) return `${what}: another subscriber saw ${seen.join()}`;
  }
  return undefined;
};

interface World {
  readonly escaped: unknown[];
  readonly listen: (error: unknown) => void;
}

export const callbackScenes = [
  scene<World>({
    rule: 'I17',
    promise: 'What a callback throws ends no process, and every error is typed',
    open: () => {
      const escaped: unknown[] = [];
      const listen = (error: unknown): void => void escaped.push(error);
      process.on('unhandledRejection', listen);
      process.on('uncaughtException', listen);
      return { escaped, listen };
    },
    close: ({ listen }) =>
      process.off('unhandledRejection', listen).off('uncaughtException', listen),
    attacks: {
      ...Object.fromEntries(Object.entries(places).map(([name, place]) => [name, throwing(place)])),
      'a subscriber of events$': subscriber,
      'errors that nothing handles': async ({ escaped }) => {
        await new Promise(setImmediate);
        return escaped.length === 0 ? undefined : `${escaped.length} errors`;
      },
    },
  }),
];
