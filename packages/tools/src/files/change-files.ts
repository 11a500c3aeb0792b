import { createHash, randomUUID } from 'node:crypto';
import { lchown, link, lstat, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { getuid } from 'node:process';
import {
  type ApprovalRequest,
  requireApproval,
  tool,
  type Tool,
  type ToolContext,
  toolOutput,
  type ToolOutput,
  type Verdict,
} from 'millrace';
import { defined, messageOf } from 'millrace/values';
import { defer, from, mergeMap, type Observable, type ObservableInput, of } from 'rxjs';
import { editedText, editFileInput, type TextEdit, writeFileInput } from '../edits/index.js';
import { anchored } from './anchored.js';
import {
  type ConfinedPath,
  type Confinement,
  confineNewPath,
  isMissing,
  isThere,
  refuseStore,
} from './confined-path.js';
import { explainFailure } from './explain-failure.js';
import type { Change, ChangeLimit } from './limit-changes.js';
import { readText } from './read-text.js';
import { runsCode } from './runs-code.js';

/** A request to change a file, with the change as the approver should show it. */
export interface FileChangeRequest extends ApprovalRequest {
  /** Relative to the root, separated by `/`. */
  readonly path: string;
  /** The change as a unified diff with 3 lines of context. */
  readonly diff: string;
  /**
   * Why the file may run code without being called by name, such as `Git runs it at each commit`: for hooks, settings of shells, editors
   * and builds, scripts and executable files. Absent for other files. A person should see it.
   */
  readonly runsCode?: string;
}

/** Decides whether a file is changed. Emitting nothing denies it; so does an error. */
export type FileApprover = (request: FileChangeRequest) => Verdict | ObservableInput<Verdict>;

export interface ChangeRules {
  readonly confinement: Confinement;
  /** Of a file, before and after. */
  readonly maxBytes: number;
  readonly approve: boolean | FileApprover;
  readonly limit: ChangeLimit;
}

export const writeFile = (rules: ChangeRules): Tool => {
  const { run, approved } = changesBy(rules, ({ content }: WriteInput) => content);
  return approved(
    tool({
      name: 'write_file',
      idempotent: true,
      description:
        'Writes a text file: creates it, with its directories, or replaces its whole content. To change parts of a ' +
        'file, use edit_file.',
      input: writeFileInput,
      run,
    }),
  );
};

export const editFile = (rules: ChangeRules): Tool => {
  const { run, approved } = changesBy(rules, (edit: TextEdit & { readonly path: string }, before) =>
    editedText(before, edit),
  );
  return approved(
    tool({
      name: 'edit_file',
      description:
        'Replaces a part of a text file. The old text must occur in the file exactly once, including spaces and line ' +
        'breaks. Read the file first.',
      input: editFileInput,
      run,
    }),
  );
};

interface WriteInput {
  readonly path: string;
  readonly content: string;
}

// ---------------------------------------------------------------- changes

/** Returns the new content of a file, or throws an error for the model. */
type Edit<Input> = (input: Input, before: string | undefined) => string;

/** The tool and its approver plan the same change: the tool makes it if the file is still as the approver has seen it. */
const changesBy = <Input extends { readonly path: string }>(
  { confinement, maxBytes, approve, limit }: ChangeRules,
  edit: Edit<Input>,
) => {
  const seen = createSeen();
  const plan = async (input: Input, signal: AbortSignal): Promise<Change> => {
    const place = await confineNewPath(input.path, confinement);
    const before = await textAt(place, maxBytes, signal);
    const after = edit(input, before);
    checkText(after, maxBytes);
    const change = { place, before, after };
    await limit.check(change);
    return change;
  };
  const run = async (input: Input, context: ToolContext): Promise<ToolOutput> => {
    try {
      const change = await plan(input, context.signal);
      if (!seen.isAsApproved(context, change.before)) {
        throw new Error(`'${change.place.shown}' has changed since the approval. Read it again.`);
      }
      context.signal.throwIfAborted();
      if (change.after !== change.before) {
        await limit.counted(change, () => replaceFile(change));
      }
      return await report(change);
    } catch (error) {
      throw await explainFailure(error, input.path, confinement, 'written');
    }
  };
  const decide$ = (
    approver: FileApprover,
    request: ApprovalRequest<Input>,
  ): Observable<Verdict> => {
    const { value, context } = request;
    const planned = plan(value, context.signal).then(
      async (change) => ({
        change,
        shown: {
          path: change.place.shown,
          diff: await diffOf(change),
          ...defined({ runsCode: await whyItRuns(change) }),
        },
      }),
      async (error: unknown) => ({
        reason: messageOf(await explainFailure(error, value.path, confinement, 'written')),
      }),
    );
    return from(planned).pipe(
      mergeMap((it) => {
        if ('reason' in it) return of({ approved: false, reason: it.reason });
        seen.add(context, it.change.before);
        return verdict$(approver({ ...request, ...it.shown }));
      }),
    );
  };
  const approved = (target: Tool<Input>): Tool =>
    typeof approve === 'boolean'
      ? requireApproval(target, approve)
      : requireApproval(target, (request) => defer(() => decide$(approve, request)));
  return { run, approved };
};

/** Names of its directories above the root count as well: a root may be `.github`. */
const whyItRuns = async ({
  place: { real },
  before,
  after,
}: Change): Promise<string | undefined> => {
  const why = runsCode(real.split(sep).join('/'), after);
  if (why !== undefined || before === undefined) return why;
  return ((await lstat(real)).mode & 0o111) === 0 ? undefined : 'It is an executable file';
};

const verdict$ = (given: Verdict | ObservableInput<Verdict>): Observable<Verdict> =>
  typeof given === 'boolean' || 'approved' in given ? of(given) : from(given);

const maxSeen = 1_000;

/** The content of files that approvers have seen, by tool call: a person may take hours to decide. */
const createSeen = () => {
  const hashes = new Map<string, string>();
  const keyOf = ({ callId, toolCallId }: ToolContext): string => `${callId} ${toolCallId}`;
  return {
    add: (context: ToolContext, before: string | undefined): void => {
      hashes.set(keyOf(context), hashOf(before));
      const [oldest] = hashes.keys();
      if (hashes.size > maxSeen && oldest !== undefined) hashes.delete(oldest);
    },
    /** Also true if no approver has seen it, such as after a restart. */
    isAsApproved: (context: ToolContext, before: string | undefined): boolean => {
      const hash = hashes.get(keyOf(context));
      hashes.delete(keyOf(context));
      return hash === undefined || hash === hashOf(before);
    },
  };
};

const hashOf = (text: string | undefined): string =>
  text === undefined ? '' : createHash('sha256').update(text).digest('hex');

/** The text of a file, or undefined if there is no such file. */
export const textAt = async (
  { real, shown }: ConfinedPath,
  maxBytes: number,
  signal: AbortSignal,
): Promise<string | undefined> => {
  try {
    return await readText(real, { name: shown, maxBytes, signal });
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
};

export const checkText = (text: string, maxBytes: number): void => {
  if (text.includes('\0')) throw new Error('The new content has a NUL character: it is not text.');
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes) {
    throw new Error(
      `The new content has ${bytes} bytes; files of up to ${maxBytes} can be written.`,
    );
  }
};

const report = async (change: Change): Promise<ToolOutput> => {
  const { place, before, after } = change;
  const done = before === undefined ? 'Created' : 'Changed';
  return toolOutput({
    content:
      before === after ? `'${place.shown}' had this content already.` : `${done} '${place.shown}'.`,
    details: { path: place.shown, isNew: before === undefined, diff: await diffOf(change) },
  });
};

/** Comparing unrelated texts takes quadratic time, so it is limited. */
const diffOf = async ({ place, before, after }: Change): Promise<string> => {
  const { createTwoFilesPatch, FILE_HEADERS_ONLY } = await import('diff');
  const [from_, to] = [before === undefined ? '/dev/null' : `a/${place.shown}`, `b/${place.shown}`];
  const limits = { timeout: 200, maxEditLength: 5_000 };
  const options = { context: 3, headerOptions: FILE_HEADERS_ONLY, ...limits };
  return (
    createTwoFilesPatch(from_, to, before ?? '', after, undefined, undefined, options) ??
    `--- ${from_}\n+++ ${to}\nThe change is too large to compare. The new content is:\n\n${after}`
  );
};

// ---------------------------------------------------------------- files

/** Replaces a file in one step: others see the old or the new content, and a link in its place is not followed. */
export const replaceFile = async ({ place, before, after }: Change): Promise<void> => {
  const { real, shown } = place;
  await makeDirectory(dirname(real));
  await anchored(dirname(real), async (directory) => {
    const target = join(directory, basename(real));
    const temporary = join(directory, `.${randomUUID()}.tmp`);
    try {
      const mode = before === undefined ? undefined : (await lstat(target)).mode & 0o777;
      await writeNew(temporary, after, mode);
      await ownAs(before === undefined ? directory : target, temporary);
      // A store may have been opened while the disk was busy.
      await refuseStore(shown, real);
      await (before === undefined ? putNew : rename)(temporary, target);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  });
};

/** Moves a file to a name that nothing has, also if something gets it in the same moment. */
const putNew = async (temporary: string, target: string): Promise<void> => {
  try {
    await link(temporary, target);
  } catch (error) {
    if (await isThere(target)) throw error;
    // There are file systems without hard links.
    await rename(temporary, target);
    return;
  }
  await rm(temporary);
};

const writeNew = async (name: string, text: string, mode: number | undefined): Promise<void> => {
  // Fails if the name exists.
  const file = await open(name, 'wx', mode);
  try {
    await file.writeFile(text);
    // The mask of the process does not apply to this one.
    if (mode !== undefined) await file.chmod(mode);
    await file.sync();
  } finally {
    await file.close();
  }
};

const makeDirectory = async (real: string): Promise<void> => {
  if (await isThere(real)) return;
  await makeDirectory(dirname(real));
  await anchored(dirname(real), async (directory) => {
    const made = join(directory, basename(real));
    await mkdir(made);
    await ownAs(directory, made);
  });
};

/** Gives a file that root has created to the owner of the directory or of the replaced file, who could not change it otherwise. */
const ownAs = async (model: string, made: string): Promise<void> => {
  if (getuid?.() !== 0) return;
  const { uid, gid } = await stat(model);
  await lchown(made, uid, gid);
};
