import { createAgent, type Model } from 'millrace';
import { agUi } from '@millrace/server/ag-ui';
import { userLimits } from '@millrace/server/limits';
import { openAi } from '@millrace/server/openai';
import { concat, defer, ignoreElements, of, ReplaySubject } from 'rxjs';
import { postJson } from '../driver/http.js';
import { type Serving, serving, userOf } from '../driver/serving.js';
import { scene } from '../scene.js';

/** How many calls a user may have at a time. */
const most = 3;

interface World {
  readonly served: Serving;
  /** How many calls have started so far. */
  readonly started: () => number;
  /** Lets every call end. */
  readonly release: () => void;
}

const open = async (): Promise<World> => {
  let started = 0;
  const end$ = new ReplaySubject<never>(1);
  const model: Model = {
    name: 'waiting',
    stream$: () =>
      defer(() => {
        started += 1;
        return concat(
          of({ type: 'text', text: 'Hi.' } as const),
          end$.pipe(ignoreElements()),
          of({ type: 'finish', finish: 'stop' } as const),
        );
      }),
  };
  const served = await serving(createAgent({ name: 'helper', model }), {
    user: userOf,
    limits: userLimits({ calls: most }),
    protocols: [openAi(), agUi()],
  });
  return { served, started: () => started, release: () => end$.complete() };
};

const hi = { role: 'user', content: 'Hi.' };
/** Four calls over each protocol, each in a conversation of its own. */
const requests: readonly (readonly [path: string, body: (index: number) => object])[] = [
  [
    '/api/chat',
    (index) => ({
      id: `c${index}`,
      messages: [{ id: 'q', role: 'user', parts: [{ type: 'text', text: 'Hi.' }] }],
    }),
  ],
  ['/v1/chat/completions', () => ({ model: 'helper', messages: [hi] })],
  ['/v1/responses', () => ({ model: 'helper', input: 'Hi.' })],
  [
    '/api/ag-ui',
    (index) => ({
      threadId: `t${index}`,
      runId: 'r',
      messages: [{ id: 'm', ...hi }],
      tools: [],
      context: [],
      state: {},
      forwardedProps: {},
    }),
  ],
];

export const limitScenes = [
  scene<World>({
    rule: 'C6',
    promise: 'The limits of a user hold over all protocols together',
    open,
    close: ({ served }) => served.close(),
    attacks: {
      'sixteen calls over four protocols at the same time': async ({
        served,
        started,
        release,
      }) => {
        const refused: number[] = [];
        const answers = requests.flatMap(([path, body]) =>
          Array.from({ length: 4 }, async (_, index) => {
            const { status } = await postJson(served.url + path, body(index), {
              authorization: 'eve',
            });
            if (status === 429 && refused.push(status) === 16 - most) release();
            return status;
          }),
        );
        const statuses = await Promise.all(answers);
        return started() === most ? undefined : `${started()} started: ${statuses.join()}`;
      },
    },
  }),
];
