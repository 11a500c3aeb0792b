import { firstValueFrom } from 'rxjs';
import { answer } from './answer.js';
import type { AskArguments } from './command-line/arguments.js';
import { helpHint } from './command-line/help.js';
import { exitCodes, wrongUsage } from './exit-codes.js';
import { givenQuestion$ } from './given-question.js';
import { newCallId } from './runs/run-id.js';
import { prepare } from './prepare.js';
import { promptSign } from './presentation/introduction.js';
import { isHumanOutput } from './presentation/presenter.js';
import { oneLine } from './presentation/shorten.js';
import { startCall, callableFor } from './callable-for.js';
import { tidy } from './runs/tidy.js';
import type { Setting } from './setting.js';

/** Answers one question. Resolves to the exit code. */
export const runQuestion = async (setting: Setting<AskArguments>): Promise<number> => {
  const { given, environment, output, theme, errorTheme } = setting;
  const asked = await firstValueFrom(givenQuestion$(given, environment));
  if (asked.type === 'missing') {
    environment.stderr.write(`error: ${asked.why}\n${helpHint}\n`);
    return wrongUsage;
  }
  const prepared = await prepare(setting);
  const { sample } = prepared;
  const isOwn = asked.type === 'none';
  if (isHumanOutput(given)) {
    const shown = isOwn ? sample : oneLine(asked.text, theme.width - 2, theme);
    output.stream.write(`${promptSign(theme)}${shown}\n`);
  } else if (isOwn) {
    environment.stderr.write(`${promptSign(errorTheme)}${sample}\n`);
  }
  const callId = newCallId();
  const begin = startCall(
    callableFor(prepared, given.session),
    isOwn ? sample : asked.text,
    callId,
    given,
    prepared,
  );
  const outcome = await answer(callId, begin, prepared, setting);
  await tidy(prepared.runs, setting, outcome);
  await prepared.runs?.close();
  return exitCodes[outcome];
};
