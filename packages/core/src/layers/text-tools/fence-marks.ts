import type { Desk, Found } from './desk.js';
import { ahead, fenceAt, type FenceLine, reach } from './peek.js';

export interface FenceNeeds {
  readonly bareJson: (offset: number, fence: string, isWhole: boolean) => Found;
  readonly isLead: () => boolean;
}

export const createFenceMarks = (desk: Desk, { bareJson, isLead }: FenceNeeds) => {
  const { tape, voice } = desk;

  const endCode = (marks: string): Found => {
    if (!tape.isLineStart) return undefined;
    const fence = fenceAt(tape.peek(reach), tape.isEnd);
    if (fence === 'more') return 'more';
    if (fence?.isBare === true && fence.marks.startsWith(marks)) {
      desk.code = undefined;
      voice.literal(tape.take(fence.length));
      return 'found';
    }
    return undefined;
  };
  /** A fence opens code, unless it closes the one around the whole reply. */
  const inAnswer = ({ length, marks, isBare }: FenceLine): Found => {
    if (isBare && desk.openFences > 0) {
      const behind = tape.peek(reach, length);
      if (behind.trim() === '' && behind.length < reach) {
        if (!tape.isEnd) return 'more';
        tape.take(length);
        return 'found';
      }
    }
    desk.code = marks;
    voice.literal(tape.take(length));
    return 'found';
  };
  /** A fence is left out around an action and around a whole reply, and is text around all else. */
  const open = (): Found => {
    let offset = 0;
    let marks: string | undefined;
    let isWhole = true;
    for (;;) {
      const fence = fenceAt(tape.peek(reach, offset), tape.isEnd);
      if (fence === 'more') return 'more';
      if (fence === undefined || offset > 2 * reach) break;
      if (marks === undefined && fence.isBare && closeFence(desk)) {
        tape.take(fence.length);
        return 'found';
      }
      marks ??= fence.marks;
      isWhole &&= /^[`~]+[ \t]*(?:json|jsonc|json5|tool_call|tool_code)?\s*$/i.test(
        tape.peek(fence.length, offset),
      );
      offset += fence.length;
      const space = tape.peek(reach, offset);
      offset += space.length - space.trimStart().length;
      if (tape.left === offset && !tape.isEnd) return 'more';
    }
    if (marks === undefined) return undefined;
    const next = ahead(tape, desk.words, offset);
    if (next === 'more') return 'more';
    const { label, tag } = next;
    const isAction = tag?.type === 'call' || tag?.type === 'function' || tag?.type === 'action';
    if (isWhole && (label !== undefined || isAction)) {
      desk.isTemplate = isLead();
      tape.take(offset);
      tape.isLineStart = true;
      desk.openFences += 1;
      return 'found';
    }
    const bare = bareJson(offset, marks, isWhole);
    if (bare !== undefined) return bare;
    desk.code = marks;
    voice.literal(tape.take(tape.before(/\n/g, 0) + 1));
    return 'found';
  };
  return { open, endCode, inAnswer };
};

export const closeFence = (desk: Desk): boolean => {
  if (desk.openFences === 0) return false;
  desk.openFences -= 1;
  desk.isBehindTemplate = desk.isTemplate && desk.findings.asks.length > 0;
  return true;
};
