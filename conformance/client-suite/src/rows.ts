import { MillraceError, requireApproval, suspend, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { finish, type ScriptedAnswer, text, toolCall } from 'millrace/testing';
import type { ServeOptions } from '@millrace/server/node';
import { BehaviorSubject, filter, map, of, take, throwError } from 'rxjs';
import type { Scene } from './stage.js';

/** A row of the table: a scenario that runs for every client. */
export interface Row {
  readonly name: string;
  readonly about: string;
  readonly scene: Scene;
}

const pay = [toolCall('pay', { amount: 5 }, 'p'), finish()];
const afterOne = [[text('Hello.')], [text('One.')], [text('Two.')]];
/** A tool that waits for the client. */
const asking =
  (answer: string): Scene =>
  ({ pays, approvals }) => ({
    answers: [pay, [text(answer)]],
    agent: { tools: [requireApproval(pays, approvals.approve)] },
  });
const held =
  (options: ServeOptions = {}, before: readonly ScriptedAnswer[] = []): Scene =>
  ({ held: { answer$ } }) => ({ answers: [...before, answer$], options });

const city = jsonSchema({ type: 'object', properties: { city: { type: 'string' } } });

/** Both runs of this tool end once both have begun. */
const lookTogether = () => {
  const begun$ = new BehaviorSubject(0);
  const bothBegun$ = begun$.pipe(
    filter((begun) => begun === 2),
    take(1),
  );
  return tool({
    name: 'look',
    description: 'Looks at the weather.',
    input: city,
    run: ({ city: where = '' }) => {
      begun$.next(begun$.value + 1);
      return bothBegun$.pipe(map(() => `Rain in ${where}.`));
    },
  });
};

export const rows = {
  good: {
    name: 'good run',
    about: 'The answer streams in two parts and arrives complete.',
    scene: () => ({ answers: [[text('Hello'), text(' Ann.')]] }),
  },
  parallel: {
    name: 'parallel tools',
    about: 'Two tool calls run at the same time, followed by the answer.',
    scene: () => ({
      answers: [
        [toolCall('look', { city: 'Oslo' }, 'a'), toolCall('look', { city: 'Rome' }, 'b')],
        [text('Rain in both.')],
      ],
      agent: { tools: [lookTogether()] },
    }),
  },
  toolError: {
    name: 'tool error',
    about: 'A tool throws. The client sees that it failed, but not why, and gets the answer.',
    scene: () => ({
      answers: [[toolCall('broken', {}, 'a')], [text('It is broken.')]],
      agent: {
        tools: [
          tool({
            name: 'broken',
            description: 'Fails.',
            run: () => throwError(() => new Error('secret')),
          }),
        ],
      },
    }),
  },
  denial: {
    name: 'denial',
    about:
      'A rule on the server denies a tool call. The client sees the denial, but not the reason, and gets the answer.',
    scene: ({ pays }) => ({
      answers: [pay, [text('Then not.')]],
      agent: {
        tools: [requireApproval(pays, () => of({ approved: false, reason: 'secret' }))],
      },
    }),
  },
  approval: {
    name: 'approval',
    about: 'A tool waits until the client approves it through its protocol. It runs once.',
    scene: asking('It is paid.'),
  },
  refusal: {
    name: 'approval denied',
    about:
      'The client denies a tool call with a reason. The tool does not run, and the model gets the reason.',
    scene: asking('Then not.'),
  },
  lateApproval: {
    name: 'approval after a reload',
    about: 'A new client loads the conversation, sees the pending approval, and approves it.',
    scene: asking('It is paid.'),
  },
  suspended: {
    name: 'suspended tool',
    about: 'A tool of the agent suspends, and the client supplies its result.',
    scene: () => ({
      answers: [[toolCall('where', {}, 'w'), finish()], [text('You are in Oslo.')]],
      agent: {
        tools: [
          tool({
            name: 'where',
            description: 'Asks the client where the user is.',
            run: () => suspend('Where are you?'),
          }),
        ],
      },
    }),
  },
  clientTool: {
    name: 'client tool',
    about: 'The request defines a tool that the client runs. Its result resumes the call.',
    scene: () => ({
      answers: [[toolCall('weather', { city: 'Oslo' }, 'w'), finish()], [text('It rains.')]],
    }),
  },
  regenerate: {
    name: 'regenerate',
    about:
      'The second answer is generated again. The model sees only the first question and answer.',
    scene: () => ({ answers: afterOne }),
  },
  edit: {
    name: 'edit',
    about: 'The second question is replaced. The model does not see the first version.',
    scene: () => ({ answers: afterOne }),
  },
  picture: {
    name: 'picture in',
    about: 'A message has an image, which reaches the model unchanged.',
    scene: () => ({ answers: [[text('A cat.')]] }),
  },
  fault: {
    name: 'model fault',
    about: "The model fails. The client's own error state has the user-facing message.",
    scene: () => ({
      answers: [
        () => throwError(() => new MillraceError('server', 'secret', { retryable: false })),
      ],
    }),
  },
  interrupt: {
    name: 'interrupt',
    about: 'The call is interrupted in the middle of its answer. The text so far stays.',
    scene: held(),
  },
  abort: {
    name: 'abort',
    about: 'The client disconnects in the middle of the answer, and the model is unsubscribed.',
    scene: held({ onDisconnect: 'abort' }),
  },
  resume: {
    name: 'resume',
    about:
      'The client loses its connection in the middle of an answer, reconnects, and gets all of it.',
    scene: held(),
  },
  reload: {
    name: 'reload',
    about: 'A new client loads the conversation and joins the running answer.',
    scene: held({}, [[text('Hello.')]]),
  },
} satisfies Readonly<Record<string, Row>>;

export type RowId = keyof typeof rows;

// eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- The keys of an object literal.
export const rowIds = Object.keys(rows) as readonly RowId[];
