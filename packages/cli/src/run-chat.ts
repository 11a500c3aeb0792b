import { answer } from './answer.js';
import { chat } from './chat.js';
import type { AskArguments } from './command-line/arguments.js';
import { exitCodes } from './exit-codes.js';
import { newCallId } from './runs/run-id.js';
import { prepare } from './prepare.js';
import { promptSign } from './presentation/introduction.js';
import { isHumanOutput } from './presentation/presenter.js';
import { wrapFor } from './presentation/wrap.js';
import { hint, storeOption } from './runs/hints.js';
import { tidy } from './runs/tidy.js';
import type { Setting } from './setting.js';
import { startCall, callableFor } from './callable-for.js';
import { createPrompt } from './terminal/prompt.js';
import { sessions } from 'millrace/sessions';

/** Chats in a new conversation, or in the named one. Resolves to the exit code. */
export const runChat = async (setting: Setting<AskArguments>): Promise<number> => {
  const { given, environment, output, theme } = setting;
  const prepared = await prepare(setting);
  const { agent, runs } = prepared;
  const name = given.session === '' ? `chat-${newCallId().slice(0, 8)}` : given.session;
  const callable =
    runs === undefined && given.session === ''
      ? sessions(agent).open(name)
      : callableFor(prepared, name);
  const print = (text: string): void => {
    if (isHumanOutput(given)) output.stream.write(`${theme.colors.dim(text)}\n`);
  };
  print(wrapFor('Ask a question. An empty line ends the chat.', theme));
  let asked = 0;
  const prompt = createPrompt({
    input: environment.stdin,
    output: output.stream,
    text: promptSign(theme),
  });
  const end = await chat({
    prompt,
    ask: (question) => {
      asked += 1;
      const callId = newCallId();
      const begin = startCall(callable, question, callId, given, prepared);
      return answer(callId, begin, prepared, setting);
    },
  });
  if (asked > 0 && runs !== undefined) {
    const command = `npx @millrace/cli --session ${name}${storeOption(given.store)}`;
    print(hint('Continue this conversation:', command, theme));
  }
  await tidy(runs, setting, end);
  await runs?.close();
  return end === 'ended' ? 0 : exitCodes[end];
};
