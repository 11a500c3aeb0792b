import { MillraceError } from 'millrace';
import type { AskHuman, HumanRequest } from '@millrace/flow';
import type { FlowArguments } from '../command-line/arguments.js';
import { printable } from '../presentation/printable.js';
import type { Setting } from '../setting.js';
import { createPrompt } from '../terminal/prompt.js';

/** Answers with `--answer`, once for each component, or asks in the terminal. */
export const askPerson = ({
  given,
  environment: { stdin, stderr },
}: Setting<FlowArguments>): AskHuman => {
  const used = new Set<string>();
  const ask = async (label: string): Promise<string> => {
    const prompt = createPrompt({ input: stdin, output: stderr, text: `${printable(label)} ` });
    const result = await prompt();
    if (result.type === 'line') return result.line;
    throw new MillraceError('aborted', 'The question was not answered.');
  };
  return async (request) => {
    const { component, problem } = request;
    const answer = Object.hasOwn(given.answers, component) ? given.answers[component] : undefined;
    if (answer !== undefined && !used.has(component)) {
      used.add(component);
      return answer;
    }
    if (stdin.isTTY !== true) throw noPerson(request);
    if (problem !== undefined) stderr.write(`${printable(problem)}\n`);
    return request.fields === undefined ? ask(questionOf(request)) : askFields(request, ask);
  };
};

const questionOf = ({ message, choices }: HumanRequest): string =>
  choices === undefined ? message : `${message} (${choices.join(' / ')})`;

const askFields = async (
  { message, fields = {} }: HumanRequest,
  ask: (label: string) => Promise<string>,
): Promise<Readonly<Record<string, string>>> => {
  const answers: Record<string, string> = {};
  let heading = `${message}\n`;
  for (const [name, { label = name, type, choices = [], required }] of Object.entries(fields)) {
    const allowed = type === 'boolean' ? 'yes / no' : choices.join(' / ');
    const notes = [allowed, required === false ? 'optional' : ''].filter((note) => note !== '');
    const shown = notes.length === 0 ? '' : ` (${notes.join(', ')})`;
    answers[name] = await ask(`${heading}${label}${shown}:`);
    heading = '';
  }
  return answers;
};

/** A plain error: its message is that of the component. */
const noPerson = ({ component, message, problem }: HumanRequest): Error =>
  new Error(
    problem === undefined
      ? `The component '${component}' asks a person: "${message}". Run it in a terminal, or pass --answer ${component}=<text>.`
      : `The answer for '${component}' is invalid: ${problem}`,
  );
