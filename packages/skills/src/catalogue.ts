import { lookUpForm, termsIn } from 'millrace/values';
import type { SkillSummary } from './skill.js';

/** The section of the system prompt that lists skills, and whether it leaves some out. */
export interface Catalogue {
  readonly text: string;
  readonly isPartial: boolean;
}

/** Shorter descriptions say too little to choose by. */
const minDescription = 80;

/**
 * Lists skills in about `maxLength` characters: with their descriptions, else with the starts of these, else only the
 * first ones, with a note that `search_skills` finds the others.
 */
export const catalogueOf = (skills: readonly SkillSummary[], maxLength: number): Catalogue => {
  const names = skills.reduce((sum, { name }) => sum + name.length + lineExtra, 0);
  const descriptions = skills.reduce((sum, { description }) => sum + description.length, 0);
  const share = Math.floor((maxLength - names) / Math.max(1, skills.length));
  const isWhole = names + descriptions <= maxLength;
  const limit = isWhole ? Infinity : Math.max(share, minDescription);
  let room = maxLength;
  const fitting = skills
    .map((skill) => lineOf(skill, limit))
    .filter((line) => (room -= line.length + 1) >= 0);
  const left = skills.length - fitting.length;
  const more = left === 0 ? [] : [`There are ${left} more: find them with search_skills.`];
  return { text: [heading, ...fitting, ...more].join('\n'), isPartial: left > 0 };
};

const heading = `[Skills]
A skill has instructions for a kind of task. If one fits, call read_skill before you start, and follow it.`;

/** `- `, `: ` and the line break. */
const lineExtra = 5;

/** One line of a list: sources may return names with line breaks. */
export const lineOf = ({ name, description }: SkillSummary, maxLength = Infinity): string => {
  const line = oneLine(description);
  const shown = line.length > maxLength ? `${line.slice(0, maxLength - 1)}…` : line;
  return `- ${oneLine(name)}: ${shown}`;
};

const oneLine = (text: string): string => text.replace(/[\s\p{Cc}]+/gu, ' ').trim();

/** Finds the skills whose names and descriptions have the words of a query, best first. */
export const searchSkills = (
  skills: readonly SkillSummary[],
  query: string,
): readonly SkillSummary[] => {
  const wanted = formsIn(query);
  const score = ({ name, description }: SkillSummary): number => {
    const inName = formsIn(name);
    const inDescription = formsIn(description);
    return [...wanted].reduce(
      (sum, term) => sum + (inName.has(term) ? 3 : 0) + (inDescription.has(term) ? 1 : 0),
      0,
    );
  };
  return skills
    .map((skill) => ({ skill, score: score(skill) }))
    .filter((it) => it.score > 0)
    .sort((a, b) => b.score - a.score)
    .map(({ skill }) => skill);
};

const formsIn = (text: string): ReadonlySet<string> =>
  new Set(termsIn(text).flatMap((term) => lookUpForm(term) ?? []));
