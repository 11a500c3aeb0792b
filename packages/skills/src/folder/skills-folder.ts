import { realpathSync, statSync } from 'node:fs';
import { readdir, realpath } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { MillraceError } from 'millrace';
import { checkOptions, isRecord, type Rule, wholeNumber } from 'millrace/values';
import {
  catchError,
  defer,
  finalize,
  from,
  map,
  mergeMap,
  type Observable,
  of,
  reduce,
} from 'rxjs';
import { parseSkill } from '../parse-skill.js';
import { anchored, readText } from './read-text.js';
import {
  type LoadedSkill,
  type Skill,
  type SkillList,
  type SkillSource,
  summaryOf,
} from '../skill.js';

/** Options of `skillsFolder`. */
export interface SkillsFolderOptions {
  /** Maximum number of skills; more are left out, with a warning. Default: 500. */
  readonly maxSkills?: number | undefined;
  /** Maximum size of a file in bytes. Larger ones are not read. Default: 1,000,000. */
  readonly maxBytes?: number | undefined;
}

/**
 * A source of skills from a folder, which has a folder with a `SKILL.md` for each skill: `skills/pdf-forms/SKILL.md`.
 * Files are read when they are needed, so edits apply to the next call. A broken skill is left out, with a warning
 * that names its file and line. Paths that leave the folder of the skill, also through symbolic links, files that are
 * not UTF-8 text or too large, and anything but regular files are refused. Throws a `config` error if there is no
 * such folder.
 */
export const skillsFolder = (folder: string, options: SkillsFolderOptions = {}): SkillSource => {
  checkOptions('skillsFolder()', options, rules);
  const { maxSkills = 500, maxBytes = 1_000_000 } = options;
  const root = realFolder(folder);
  const skill$ = (name: string): Observable<Skill> =>
    abortable$(async (signal) => {
      const place = await confined(root, `${name}/SKILL.md`);
      return parsed(await readText(place, `${name}/SKILL.md`, maxBytes, signal), name);
    });
  return {
    list$: () =>
      abortable$(() => entriesIn(root)).pipe(
        mergeMap(({ names, isSkill }) =>
          from(names.slice(0, maxSkills)).pipe(
            mergeMap((name) => skill$(name).pipe(map(listedOf), catchError(problemOf(name))), 8),
            reduce(added, {
              skills: [],
              problems: [
                ...(isSkill ? [skillItself(folder)] : []),
                ...(names.length > maxSkills ? [tooMany(names.length, maxSkills)] : []),
              ],
            }),
          ),
        ),
        map(sorted),
      ),
    read$: (name) =>
      skill$(name).pipe(
        mergeMap((skill) =>
          abortable$(async (): Promise<LoadedSkill> => {
            const { files: _, ...rest } = skill;
            return { ...rest, files: await filesIn(await confined(root, name)) };
          }),
        ),
      ),
    readFile$: (name, path) =>
      abortable$(async (signal) => {
        const own = await confined(root, name);
        return readText(await confined(own, path), path, maxBytes, signal);
      }).pipe(
        catchError((error: unknown) => {
          throw codeOf(error) === undefined ? error : new Error(unreadable(name, path, error));
        }),
      ),
  };
};

const rules: Readonly<Record<keyof SkillsFolderOptions, Rule>> = {
  maxSkills: wholeNumber(1),
  maxBytes: wholeNumber(1),
};

const realFolder = (folder: string): string => {
  try {
    const real = realpathSync(folder);
    if (statSync(real).isDirectory()) return real;
  } catch {
    // A missing folder is the same mistake.
  }
  throw new MillraceError(
    'config',
    `skillsFolder(): there is no folder '${folder}'. Create it, or pass another path.`,
  );
};

// ---------------------------------------------------------------- the list

const tooMany = (count: number, maxSkills: number): string =>
  `Only ${maxSkills} of ${count} skills are read. Raise 'maxSkills' of skillsFolder().`;

const skillItself = (folder: string): string =>
  `The folder '${folder}' is a skill itself: it has a SKILL.md, which is not read. Pass the folder that contains it: skillsFolder('${join(folder, '..')}').`;

const listedOf = (skill: Skill): SkillList => ({ skills: [summaryOf(skill)], problems: [] });

const problemOf =
  (name: string) =>
  (error: unknown): Observable<SkillList> =>
    isMissing(error)
      ? of({ skills: [], problems: [] })
      : of({ skills: [], problems: [`The skill '${name}' is left out: ${sentenceOf(error)}`] });

const added = (all: SkillList, { skills, problems }: SkillList): SkillList => ({
  skills: [...all.skills, ...skills],
  problems: [...all.problems, ...problems],
});

/** The order in which files are read varies, and a prompt that varies is not cached. */
const sorted = ({ skills, problems }: SkillList): SkillList => ({
  skills: skills.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  problems: problems.toSorted(),
});

const parsed = (text: string, name: string): Skill => {
  const file = `${name}/SKILL.md`;
  const skill = parseSkill(text, file);
  if (skill.name === name) return skill;
  throw new MillraceError(
    'config',
    `${file}: 'name' is '${skill.name}', but the folder is '${name}'. They must be equal.`,
  );
};

const entriesIn = async (
  root: string,
): Promise<{ readonly names: readonly string[]; readonly isSkill: boolean }> => {
  const entries = await readdir(root, { withFileTypes: true });
  const names = entries
    .filter((entry) => !entry.name.startsWith('.') && !entry.isFile())
    .map(({ name }) => name)
    .sort();
  return { names, isSkill: entries.some(({ name }) => name === 'SKILL.md') };
};

const maxDepth = 6;
const maxFiles = 500;

/** The paths of the regular files below a folder, without `SKILL.md`, hidden ones and links. */
const filesIn = async (folder: string): Promise<readonly string[]> => {
  const found: string[] = [];
  const walk = async (below: string, depth: number): Promise<void> => {
    const entries = await anchored(join(folder, below), (place) =>
      readdir(place, { withFileTypes: true }),
    );
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = below === '' ? entry.name : `${below}/${entry.name}`;
      if (entry.name.startsWith('.') || found.length >= maxFiles) continue;
      if (entry.isDirectory() && depth < maxDepth) await walk(path, depth + 1);
      if (entry.isFile() && path !== 'SKILL.md') found.push(path);
    }
  };
  await walk('', 1);
  return found;
};

// ---------------------------------------------------------------- files

/** Emits the value of a Promise; unsubscribing aborts its signal. */
const abortable$ = <T>(work: (signal: AbortSignal) => Promise<T>): Observable<T> =>
  defer(() => {
    const abort = new AbortController();
    return from(work(abort.signal)).pipe(finalize(() => abort.abort()));
  });

/** Resolves a path below a folder. Errors do not reveal what exists outside of it. */
const confined = async (folder: string, path: string): Promise<string> => {
  if (path.includes('\0')) throw new Error('The path contains a NUL character.');
  if (path.length > 1_024) throw new Error('The path is longer than 1,024 characters.');
  const outside = new Error(
    `'${path.slice(0, 200)}' is outside of the skill. Use a path that its instructions mention.`,
  );
  const place = resolve(folder, path);
  if (!isBelow(folder, place)) throw outside;
  if (
    relative(folder, place)
      .split(sep)
      .some((part) => part.startsWith('.'))
  ) {
    throw new Error(`'${path}' is hidden, so it cannot be read.`);
  }
  const real = await realAncestor(place);
  if (real !== folder && !isBelow(folder, real)) throw outside;
  return realpath(place);
};

/** The real path, or that of the nearest ancestor that exists. */
const realAncestor = async (place: string): Promise<string> => {
  try {
    return await realpath(place);
  } catch (error) {
    const parent = dirname(place);
    if (parent === place) throw error;
    return realAncestor(parent);
  }
};

const isBelow = (folder: string, place: string): boolean => {
  const below = relative(folder, place);
  return below !== '' && below !== '..' && !below.startsWith(`..${sep}`) && !isAbsolute(below);
};

/** The message for the model, without paths of the machine. */
const unreadable = (name: string, path: string, error: unknown): string =>
  isMissing(error)
    ? `The skill '${name}' has no file '${path}'.`
    : `The file '${path}' cannot be read (${codeOf(error)}).`;

const isMissing = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '');

/** The code of an error of the file system. */
const codeOf = (error: unknown): string | undefined =>
  isRecord(error) && 'syscall' in error && 'code' in error ? String(error['code']) : undefined;

const sentenceOf = (error: unknown): string => {
  const code = codeOf(error);
  if (code !== undefined) return `its SKILL.md cannot be read (${code}).`;
  return isRecord(error) ? String(error['message']) : String(error);
};
