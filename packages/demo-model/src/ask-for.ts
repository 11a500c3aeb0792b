import type { Slot } from './read-slots.js';
import type { MissingStep } from './step.js';
import { titleOf } from './title-of.js';
import { wordsOf } from './words.js';

/** Asks for a parameter in plain words, with an example. */
export const askFor = ({ tool, slot }: MissingStep): string => {
  const name = wordsOf(slot.name).join(' ');
  const about =
    slot.description === '' ? '' : ` (${slot.description.slice(0, 200).replace(/[.\s]+$/u, '')})`;
  return `${titleOf(tool.name)} needs the ${name}${about}. Which one do you mean?${exampleOf(slot)}`;
};

const exampleOf = ({ choices, examples, kind }: Slot): string => {
  if (choices.length > 0) return ` One of: ${choices.slice(0, 12).map(String).join(', ')}.`;
  const example = examples[0] ?? typicalOf.get(kind);
  return example === undefined ? '' : ` For example “${example}”.`;
};

const typicalOf: ReadonlyMap<Slot['kind'], string> = new Map([
  ['expression', '2 + 3 * 4'],
  ['path', 'README.md'],
  ['place', 'Europe/Berlin'],
  ['url', 'https://example.com'],
  ['email', 'name@example.com'],
  ['date', '2025-01-31'],
  ['number', '5'],
]);
