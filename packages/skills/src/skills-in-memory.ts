import { MillraceError } from 'millrace';
import { isRecord } from 'millrace/values';
import { type Observable, of, throwError } from 'rxjs';
import { parseSkill } from './parse-skill.js';
import { type Skill, type SkillList, type SkillSource, summaryOf } from './skill.js';

/** A source of skills in memory. Throws a `config` error if a skill is invalid. */
export const skillsInMemory = (given: readonly (Skill | string)[]): SkillSource => {
  const all = given.map((skill) =>
    typeof skill === 'string' ? parseSkill(skill) : checked(skill),
  );
  const byName = new Map(all.map((skill) => [skill.name, skill]));
  if (byName.size < all.length) {
    const names = all.map(({ name }) => name);
    const twice = names.find((name, index) => names.indexOf(name) < index);
    throw new MillraceError('config', `skills(): two skills are named '${twice}'. Rename one.`);
  }
  const list: SkillList = { skills: all.map(summaryOf), problems: [] };
  const found$ = <T>(name: string, read: (skill: Skill) => Observable<T>): Observable<T> => {
    const skill = byName.get(name);
    return skill === undefined ? failed$(`There is no skill '${name}'.`) : read(skill);
  };
  return {
    list$: () => of(list),
    read$: (name) =>
      found$(name, (skill) => of({ ...skill, files: Object.keys(skill.files ?? {}) })),
    readFile$: (name, path) =>
      found$(name, ({ files = {} }) => {
        const text = Object.hasOwn(files, path) ? files[path] : undefined;
        return text === undefined
          ? failed$(`The skill '${name}' has no file '${path}'.`)
          : of(text);
      }),
  };
};

const failed$ = (message: string): Observable<never> => throwError(() => new Error(message));

const checked = (skill: Skill): Skill => {
  const isText = (value: unknown): boolean => typeof value === 'string' && value.trim() !== '';
  if (isRecord(skill) && [skill.name, skill.description, skill.instructions].every(isText)) {
    return skill;
  }
  throw new MillraceError(
    'config',
    'skills() takes a list of { name, description, instructions } or of the texts of SKILL.md files.',
  );
};
