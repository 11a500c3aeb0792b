import type { Observable } from 'rxjs';

/** The name and the description of a skill, which every request shows. */
export interface SkillSummary {
  readonly name: string;
  readonly description: string;
  /** The names of the tools that the model may call after it has read the skill. Default: all. */
  readonly allowedTools?: readonly string[];
}

/** A skill: instructions for a task, and files that they refer to. */
export interface Skill extends SkillSummary {
  /** The instructions, in Markdown. */
  readonly instructions: string;
  readonly license?: string;
  /** The requirements of the skill, such as a program. */
  readonly compatibility?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  /** Text files by path, such as `references/prices.md`. Default: none. */
  readonly files?: Readonly<Record<string, string>>;
}

/** A skill with the paths of its files instead of their content. */
export interface LoadedSkill extends Omit<Skill, 'files'> {
  readonly files: readonly string[];
}

/** The skills of a source, and the reasons why it leaves others out. */
export interface SkillList {
  readonly skills: readonly SkillSummary[];
  readonly problems: readonly string[];
}

/** Where skills come from. Each call lists them, and each `read_skill` reads: an edited skill needs no restart. */
export interface SkillSource {
  /** Emits the list once and completes. Cold. */
  list$(): Observable<SkillList>;
  /** Emits the skill and completes. Cold; errors with a sentence for the model. */
  read$(name: string): Observable<LoadedSkill>;
  /** Emits the text of a file of a skill and completes. Cold; errors with a sentence for the model. */
  readFile$(name: string, path: string): Observable<string>;
}

/** Returns the part of a skill that a list shows. */
export const summaryOf = ({ name, description, allowedTools }: SkillSummary): SkillSummary => ({
  name,
  description,
  ...(allowedTools && { allowedTools }),
});
