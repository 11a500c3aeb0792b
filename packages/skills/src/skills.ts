import {
  addTools,
  type Layer,
  type Context,
  MillraceError,
  tool,
  type Tool,
  type ToolContext,
  toolOutput,
  type ToolOutput,
} from 'millrace';
import { jsonSchema } from 'millrace/schema';
import {
  checkOptions,
  having,
  isRecord,
  messageOf,
  oneOf,
  type Rule,
  wholeNumber,
  nearMatches,
} from 'millrace/values';
import { catchError, concatMap, defer, map, type Observable, of, take, tap } from 'rxjs';
import { restrictingTools, skillsOfCall } from './allowed-tools.js';
import { catalogueOf, lineOf, searchSkills } from './catalogue.js';
import type { LoadedSkill, Skill, SkillList, SkillSource, SkillSummary } from './skill.js';
import { skillsInMemory } from './skills-in-memory.js';

/** Options of `skills`. */
export interface SkillsOptions {
  /** Maximum number of characters for the list of skills in the system prompt, 200 or more. Default: 8,000. */
  readonly maxCatalogue?: number | undefined;
  /** Maximum number of characters that one `read_skill` returns, 500 or more. Default: 15,000. */
  readonly maxLength?: number | undefined;
  /** Whether the model may call only the `allowed-tools` of the skills that it has read. Default: `restrict`. */
  readonly allowedTools?: 'restrict' | 'ignore' | undefined;
}

declare module 'millrace' {
  interface Events {
    /** The model has read the instructions of a skill, or the file at `path`. */
    readonly skillLoaded: {
      readonly toolCallId: string;
      readonly skill: string;
      readonly path?: string;
    };
  }
}

/**
 * Gives an agent skills: a list of them (objects or texts of `SKILL.md`), or a source, such as `skillsFolder('skills')`.
 * The system prompt has their names and descriptions. The model reads instructions and files on demand with the tool
 * `read_skill`, which emits `skillLoaded`, and finds skills that the prompt has no room for with `search_skills`. Each
 * call lists the skills again. A skill or a source that cannot be read is a `warning`. Throws a `config` error if a
 * skill of a list is invalid. Does not apply to sub-agents.
 *
 * @example
 * ```ts
 * const agent = createAgent({ model, use: [skills(skillsFolder('skills'))] });
 * ```
 */
export const skills = (
  given: readonly (Skill | string)[] | SkillSource,
  options: SkillsOptions = {},
): Layer => {
  const source = toSource(given);
  checkOptions('skills()', options, rules);
  const { maxCatalogue = 8_000, maxLength = 15_000, allowedTools = 'restrict' } = options;
  return {
    name: 'skills',
    priority: 85,
    single: true,
    ...(allowedTools === 'restrict' && restrictingTools),
    call: (context) => (next) => (call) => {
      if (call.status !== 'prepared') return next(call);
      return listed$(context, source).pipe(
        concatMap((listed) => {
          if (listed.length === 0) return next(call);
          context.local(skillsOfCall).listed = listed;
          const { text, isPartial } = catalogueOf(listed, maxCatalogue);
          const { instructions = '' } = call;
          const tools = [
            readSkill(context, source, listed, maxLength),
            ...(isPartial ? [findSkills(listed)] : []),
          ];
          const adding = addTools(...tools).call?.(context);
          const prompted = instructions === '' ? text : `${instructions}\n\n${text}`;
          return (adding?.(next) ?? next)({ ...call, instructions: prompted });
        }),
      );
    },
  };
};

const rules: Readonly<Record<keyof SkillsOptions, Rule>> = {
  maxCatalogue: wholeNumber(200),
  maxLength: wholeNumber(500),
  allowedTools: oneOf('restrict', 'ignore'),
};

const toSource = (given: readonly (Skill | string)[] | SkillSource): SkillSource => {
  if (isList(given)) return skillsInMemory(given);
  if (having('list$', 'a source')[0](given)) return given;
  throw new MillraceError(
    'config',
    "skills() takes a list of skills, or a source, such as skillsFolder('skills').",
  );
};

const isList = (given: unknown): given is readonly (Skill | string)[] => Array.isArray(given);

/** Lists the skills in a step, so that a resumed call has the same ones. */
const listed$ = (
  { hooks, perform }: Pick<Context, 'hooks' | 'perform'>,
  source: SkillSource,
): Observable<readonly SkillSummary[]> =>
  perform<SkillList>({
    kind: 'skills',
    id: 'skills',
    input: undefined,
    run: () =>
      defer(() => source.list$()).pipe(
        take(1),
        catchError((error: unknown) =>
          of({ skills: [], problems: [`The skills cannot be listed: ${messageOf(error)}`] }),
        ),
        tap(({ problems }) =>
          problems.forEach((message) => hooks.report(0, { type: 'warning', message })),
        ),
      ),
    cut: () => of({ skills: [], problems: [] }),
    form: { isWritten: isSkillList },
  }).pipe(map((list) => list.skills));

const isSkillList = (written: unknown): boolean =>
  isRecord(written) && isListOf(written['skills'], isSummary) && Array.isArray(written['problems']);

const isListOf = (value: unknown, isItem: (item: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(isItem);

const isSummary = (value: unknown): boolean => {
  if (!isRecord(value)) return false;
  const { name, description, allowedTools = [] } = value;
  const isText = (item: unknown): boolean => typeof item === 'string';
  return [name, description].every(isText) && isListOf(allowedTools, isText);
};

// ---------------------------------------------------------------- the tools

const readSkill = (
  { hooks }: Pick<Context, 'hooks'>,
  source: SkillSource,
  listed: readonly SkillSummary[],
  maxLength: number,
): Tool =>
  tool({
    name: 'read_skill',
    idempotent: true,
    description:
      'Returns the instructions of a skill, or one of the files that they mention. Long ones are returned in parts.',
    input: jsonSchema({
      type: 'object',
      properties: {
        name: {
          type: 'string',
          minLength: 1,
          maxLength: 64,
          description: 'The name of the skill.',
        },
        path: {
          type: 'string',
          minLength: 1,
          maxLength: 1_024,
          description: 'The path of a file of the skill. Default: its instructions.',
        },
        fromLine: {
          type: 'integer',
          minimum: 1,
          description: 'The first line to return, counted from 1. Default: 1.',
        },
      },
      required: ['name'],
      additionalProperties: false,
    }),
    run: ({ name, path, fromLine = 1 }, { toolCallId, iteration }: ToolContext) => {
      if (!listed.some((skill) => skill.name === name)) throw new Error(noSkill(name, listed));
      const loaded = (output: ToolOutput): void => {
        if (output.isError) return;
        const where = path === undefined ? {} : { path };
        hooks.report(iteration, { type: 'skillLoaded', toolCallId, skill: name, ...where });
      };
      const page = { fromLine, maxLength };
      return (
        path === undefined
          ? source.read$(name).pipe(map((skill) => instructionsOf(skill, page)))
          : source
              .readFile$(name, path)
              .pipe(map((text) => pageOf(text, { skill: name, path }, page)))
      ).pipe(take(1), tap(loaded));
    },
  });

const noSkill = (name: string, listed: readonly SkillSummary[]): string => {
  const names = listed.map((skill) => skill.name);
  const near = nearMatches(name, names);
  const hint =
    near.length > 0
      ? `Did you mean ${near.join(' or ')}?`
      : `There are: ${names.slice(0, 20).join(', ')}.`;
  return `There is no skill '${name}'. ${hint}`;
};

const maxFiles = 100;

export interface PageOptions {
  readonly fromLine: number;
  readonly maxLength: number;
}

const instructionsOf = (skill: LoadedSkill, page: PageOptions): ToolOutput => {
  const { name, instructions, compatibility, files } = skill;
  const needs = compatibility === undefined ? '' : `\n\n[The skill needs: ${compatibility}]`;
  const list = files.slice(0, maxFiles).map((path) => `- ${path}`);
  const more = files.length > maxFiles ? [`- … ${files.length - maxFiles} more`] : [];
  const names = ['[Files, for read_skill with path]', ...list, ...more].join('\n');
  const about = files.length === 0 ? needs : `${needs}\n\n${names}`;
  return pageOf(instructions || '(The skill has no instructions.)', { skill: name }, page, about);
};

/** A tool output with as many lines of a string as fit, and how to continue. Lines count from 1; `maxLength` is in characters. */
export const pageOf = (
  text: string,
  details: Readonly<Record<string, string>>,
  { fromLine, maxLength }: PageOptions,
  about = '',
): ToolOutput => {
  const lines = text.replace(/\r?\n$/u, '').split(/\r?\n/u);
  if (fromLine > lines.length) {
    return toolOutput({ content: `It has only ${lines.length} lines.`, isError: true });
  }
  let room = maxLength;
  const wanted = lines.slice(fromLine - 1);
  const fitting = wanted.findIndex((line) => (room -= line.length + 1) < 0);
  const shown = fitting < 0 ? wanted : wanted.slice(0, Math.max(1, fitting));
  const page = shown.join('\n');
  const last = fromLine - 1 + shown.length;
  const cut = page.length > maxLength ? ' The line is too long and was truncated.' : '';
  const more = last < lines.length ? ` Continue with fromLine: ${last + 1}.` : '';
  const isWhole = fromLine === 1 && `${cut}${more}` === '';
  const note = isWhole ? '' : `\n\n[Lines ${fromLine} to ${last} of ${lines.length}.${cut}${more}]`;
  return toolOutput({ content: `${page.slice(0, maxLength)}${note}${about}`, details });
};

const findSkills = (listed: readonly SkillSummary[]): Tool =>
  tool({
    name: 'search_skills',
    idempotent: true,
    description: 'Finds skills by the words of their names and descriptions.',
    input: jsonSchema({
      type: 'object',
      properties: {
        query: {
          type: 'string',
          minLength: 1,
          maxLength: 500,
          description: 'What the task is about.',
        },
      },
      required: ['query'],
      additionalProperties: false,
    }),
    run: ({ query }) => {
      const found = searchSkills(listed, query).slice(0, 10);
      return found.length === 0
        ? 'No skill has these words. Try others.'
        : found.map((skill) => lineOf(skill)).join('\n');
    },
  });
