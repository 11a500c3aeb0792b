import type { AgentEvent, Session } from '@millrace/core';
import { firstValueFrom, type OperatorFunction } from 'rxjs';
import { answerOnly } from './presentation/answer-only.js';
import { ask$, type Outcome } from './ask.js';
import { chat } from './chat.js';
import { chooseModel, type ChosenModel } from './choose-model.js';
import { createAssistant } from './create-assistant.js';
import { describeError } from './presentation/describe-error.js';
import type { UsageUnit } from './presentation/describe-reply.js';
import type { Environment } from './environment.js';
import { givenQuestion$ } from './given-question.js';
import { introduction, promptSign } from './presentation/introduction.js';
import { isBrokenPipe, type Output } from './terminal/output.js';
import { type Arguments, helpHint } from './parse-arguments.js';
import { present } from './presentation/present.js';
import { createPrompt } from './terminal/prompt.js';
import { oneLine } from './presentation/shorten.js';
import type { Theme } from './presentation/theme.js';
import { toJsonLines } from './presentation/to-json-lines.js';

/** What one run of the command works with. */
export interface Setting {
  readonly given: Arguments;
  readonly environment: Environment;
  readonly output: Output;
  readonly theme: Theme;
  /** The theme of `stderr`, which may go elsewhere. */
  readonly errorTheme: Theme;
  /** Whether errors show their stack. */
  readonly debug: boolean;
}

/** Does what the arguments say, and resolves to the exit code: a chat, or one question. */
export const run = (setting: Setting): Promise<number> =>
  isChat(setting) ? runChat(setting) : runQuestion(setting);

const isChat = ({ given, environment: { stdin, stdout } }: Setting): boolean =>
  given.question === '' && !given.json && stdin.isTTY === true && stdout.isTTY === true;

const runChat = async (setting: Setting): Promise<number> => {
  const { given, environment, output, theme } = setting;
  const { ask } = await prepare(setting);
  if (isTalk(given))
    output.stream.write(`${theme.colors.dim('Ask something. An empty line ends.')}\n`);
  const prompt = createPrompt({
    input: environment.stdin,
    output: output.stream,
    text: promptSign(theme),
  });
  return (await chat({ prompt, ask })) === 'ended' ? 0 : 130;
};

const runQuestion = async (setting: Setting): Promise<number> => {
  const { given, environment, output, theme, errorTheme } = setting;
  const asked = await firstValueFrom(givenQuestion$(given, environment));
  if (asked.type === 'missing') {
    environment.stderr.write(`error: ${asked.why}\n${helpHint}\n`);
    return wrongUsage;
  }
  const { ask, sample } = await prepare(setting);
  const isOwn = asked.type === 'none';
  if (isTalk(given)) {
    const shown = isOwn ? sample : oneLine(asked.text, theme.width - 2, theme);
    output.stream.write(`${promptSign(theme)}${shown}\n`);
  } else if (isOwn) {
    environment.stderr.write(`${promptSign(errorTheme)}${sample}\n`);
  }
  return exitCodes[await ask(isOwn ? sample : asked.text)];
};

const wrongUsage = 2;

const exitCodes: Readonly<Record<Outcome | 'failed', number>> = {
  answered: 0,
  failed: 1,
  interrupted: 130,
  stopped: 130,
};

/** Whether the program speaks for itself, or lets its output speak to another one. */
const isTalk = ({ json, quiet }: Arguments): boolean => !json && !quiet;

/** Milliseconds between the words of the embedded model, where somebody may read along. */
const readingPace = 1;

interface Prepared {
  readonly ask: (question: string) => Promise<Outcome | 'failed'>;
  readonly sample: string;
}

const prepare = async (setting: Setting): Promise<Prepared> => {
  const { given, environment, output, theme } = setting;
  const { env, directory, models } = environment;
  const wanted = given.model || env['MILLRACE_MODEL'];
  const name = wanted === '' ? undefined : wanted;
  const pace = isTalk(given) ? readingPace : 0;
  const chosen = await chooseModel({ env, name, pace }, models);
  const { agent, sample, warnings } = await createAssistant({ model: chosen.model, directory });
  if (isTalk(given)) {
    output.stream.write(introduction(chosen.about, warnings, theme));
  }
  const session = agent.session('main');
  return { sample, ask: (question) => ask(question, session, chosen, setting) };
};

const ask = async (
  question: string,
  agent: Session,
  { unit }: ChosenModel,
  { given, environment, output, theme, errorTheme, debug }: Setting,
): Promise<Outcome | 'failed'> => {
  const { interrupt$, stderr } = environment;
  const { maxIterations } = given;
  const presenter = presenterOf(given, theme, unit);
  try {
    const outcome = await firstValueFrom(
      ask$(question, presenter, { agent, output, interrupt$, maxIterations }),
    );
    if (outcome === 'stopped') stderr.write(`\n${errorTheme.colors.yellow('Stopped.')}\n`);
    return outcome;
  } catch (error) {
    if (isBrokenPipe(error)) throw error;
    stderr.write(`${describeError(error, errorTheme, debug)}\n`);
    return 'failed';
  }
};

const presenterOf = (
  { json, quiet }: Arguments,
  theme: Theme,
  unit: UsageUnit,
): OperatorFunction<AgentEvent, string> => {
  if (json) return toJsonLines;
  return quiet ? answerOnly : present({ theme, unit });
};
