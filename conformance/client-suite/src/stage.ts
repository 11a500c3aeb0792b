import { a2a } from '@millrace/a2a/server';
import { type AgentOptions, createAgent, type ModelChunk, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { type ScriptedAnswer, type ScriptedModel, scriptedModel } from 'millrace/testing';
import { agUi } from '@millrace/server/ag-ui';
import { approvalQueue } from '@millrace/server/approvals';
import { serve, type ServeOptions } from '@millrace/server/node';
import { openAi } from '@millrace/server/openai';
import { webSocketChat } from '@millrace/server/web-socket';
import { concatMap, finalize, firstValueFrom, from, ReplaySubject, take, timeout } from 'rxjs';

/** What a scene is made of: new for each client. */
const createProps = () => {
  const paid: unknown[] = [];
  const pays = tool({
    name: 'pay',
    description: 'Pays a bill.',
    input: jsonSchema({ type: 'object', properties: { amount: { type: 'number' } } }),
    run: (input) => {
      paid.push(input);
      return 'Paid.';
    },
  });
  return { paid, pays, held: holdAnswer(), approvals: approvalQueue({ key: new Uint8Array(32) }) };
};

type Props = ReturnType<typeof createProps>;

/** An agent with its script, and the options of its server. */
export type Scene = (props: Props) => {
  readonly answers: readonly ScriptedAnswer[];
  readonly agent?: Omit<AgentOptions, 'model'>;
  readonly options?: ServeOptions;
};

/** A server that plays a scene, for one client. */
export interface Stage extends Pick<Props, 'paid' | 'held'> {
  readonly url: string;
  readonly model: ScriptedModel;
  /** The codes of the errors that the server reports. */
  readonly errors: readonly string[];
}

/** An answer that arrives piece by piece. */
const holdAnswer = () => {
  const piece$ = new ReplaySubject<ModelChunk>(Infinity);
  const left$ = new ReplaySubject<void>(1);
  return {
    answer$: () => piece$.pipe(finalize(() => left$.next())),
    say: (text: string): void => {
      piece$.next({ type: 'text', text });
    },
    end: (): void => {
      piece$.next({ type: 'finish', finish: 'stop' });
      piece$.complete();
    },
    /** Resolves once the model is unsubscribed. */
    left: () => firstValueFrom(left$),
  };
};

const longestMs = 10_000;

/** Serves a scene with all protocols on a free port of this machine while a client plays. */
export const playOn = (
  scene: Scene,
  aiSdk: 6 | 7,
  play: (stage: Stage) => Promise<string>,
): Promise<string> => {
  const props = createProps();
  const { answers, agent, options } = scene(props);
  const model = scriptedModel(...answers);
  const errors: string[] = [];
  const served$ = serve(createAgent({ name: 'helper', model, ...agent }), {
    port: 0,
    signals: [],
    closeMs: 0,
    aiSdk,
    approvals: props.approvals,
    protocols: [agUi(), openAi(), a2a({ progress: true }), webSocketChat()],
    onError: ({ code }) => errors.push(code),
    ...options,
  });
  const played$ = served$.pipe(
    concatMap(({ url }) => from(play({ ...props, url, model, errors }))),
    take(1),
    timeout(longestMs),
  );
  return firstValueFrom(played$);
};
