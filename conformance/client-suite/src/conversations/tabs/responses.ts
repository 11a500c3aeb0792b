import OpenAI from 'openai';
import type {
  Response,
  ResponseCreateParamsNonStreaming,
} from 'openai/resources/responses/responses';
import type { Client, Opening, Tab } from '../tab.js';
import type { Line, World } from '../world.js';

type Input = ResponseCreateParamsNonStreaming['input'];

/** A response on the screen, after the one before it. */
interface Shown {
  readonly question: string;
  readonly response: Response;
  readonly after: Shown | undefined;
}

const pathTo = (shown: Shown | undefined): readonly Shown[] =>
  shown === undefined ? [] : [...pathTo(shown.after), shown];

/** A program with the SDK of OpenAI. It keeps the ids of its responses, and continues after any of them. */
export const responsesTabs = (version: string): Client => {
  /** What a tab shows, for one that is opened like it. */
  const lasts = new WeakMap<Tab, () => Shown | undefined>();
  const open = (world: World, { like, history = [] }: Opening = {}): Promise<Tab> => {
    const client = new OpenAI({
      apiKey: 'none',
      baseURL: `${world.url()}/v1`,
      maxRetries: 0,
      fetch: world.fetch,
    });
    let last = like === undefined ? undefined : lasts.get(like)?.();
    let error: string | undefined;
    const seen: Shown[] = [...pathTo(last)];
    /** The question of the last answer, which may have been lost. */
    let latest = { text: last?.question ?? '', after: last?.after };
    const ask = async (
      text: string,
      after: Shown | undefined,
      input: NonNullable<Input> = text,
    ): Promise<void> => {
      error = undefined;
      latest = { text, after };
      const before = after === undefined ? history : [];
      try {
        const response = await client.responses
          .stream({
            model: 'helper',
            input:
              before.length === 0
                ? input
                : [
                    ...before.map(({ role, text: content }) => ({ role, content })),
                    { role: 'user' as const, content: text },
                  ],
            ...(after && { previous_response_id: after.response.id }),
          })
          .finalResponse();
        error = response.error?.message;
        last = { question: text, response, after };
        seen.push(last);
      } catch (failed) {
        error = String(failed);
      }
    };
    const tab: Tab = {
      shown: () => [
        ...history,
        ...pathTo(last).flatMap(({ question, response }): readonly Line[] => [
          ...(question === '' ? [] : [{ role: 'user' as const, text: question }]),
          ...(response.output_text === ''
            ? []
            : [{ role: 'assistant' as const, text: response.output_text }]),
        ]),
      ],
      error: () => error,
      ask: (text) => ask(text, last),
      askWith: (text, part) => {
        const extra = { type: `input_${part}`, url: '/prices' };
        const content = [{ type: 'input_text', text }, extra];
        // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- A part that only others know.
        return ask(text, last, [{ role: 'user', content }] as Input);
      },
      regenerate: () => ask(latest.text, latest.after),
      edit: (question, text) =>
        ask(text, pathTo(last).find((shown) => shown.question === question)?.after),
      show: (answer) => {
        const found = seen.find(({ response }) => response.output_text === answer);
        if (found === undefined) throw new Error(`The client has not seen '${answer}'.`);
        last = found;
        latest = { text: found.question, after: found.after };
        return Promise.resolve();
      },
      bring: (output) => {
        const call = last?.response.output.find((item) => item.type === 'function_call');
        if (call === undefined) throw new Error('There is no card.');
        return ask('', last, [{ type: 'function_call_output', call_id: call.call_id, output }]);
      },
      toolCalls: () =>
        pathTo(last)
          .flatMap(({ response }) => response.output)
          .filter(({ type }) => type === 'function_call').length,
      close: () => undefined,
    };
    lasts.set(tab, () => last);
    return Promise.resolve(tab);
  };
  const again = 'a request has no id';
  const outputs = 'a response that waits is continued with what it waits for';
  const unknown = 'the API refuses unknown parts';
  return {
    name: 'openai, responses',
    version,
    open,
    keepsBranches: true,
    refusal: 404,
    missing: {
      ignoredTool: outputs,
      lateAnswer: outputs,
      ignoredApproval: outputs,
      dataPart: unknown,
      unknownPart: unknown,
      doubleSubmit: again,
      doubleWhileWriting: again,
      reloadBranches: 'the API has no list of the responses after a response',
      stopped: 'a program stops responses in the background only',
      left: 'a program without the end of a response has nothing to continue after',
      restartTaken: 'a program has the id of the last response only',
      clientHistory: 'the first input of a client is its history',
    },
  };
};
