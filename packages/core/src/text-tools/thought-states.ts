import type { Desk, Found, State } from './desk.js';
import { forget, hasActed } from './findings.js';
import { type Mark, reach, type Tag, tagAt } from './peek.js';

/** The states that tell thoughts in tags from all else. */
export interface ThoughtStates {
  /** A tag begins a thought, where it begins a line. */
  begin(tag: Mark<Tag>): Found;
  /** A tag ends one. */
  end(tag: Mark<Tag>): Found;
  /** The same behind an answer. */
  endDraft(tag: Mark<Tag>): Found;
}

/** Makes the states that tell thoughts in tags from all else. */
export const createThoughtStates = (desk: Desk): ThoughtStates => {
  const { findings, tape, voice } = desk;
  let hasTag = false;

  const begin = ({ length }: Mark<Tag>): Found => {
    if (!tape.isLineStart) return undefined;
    hasTag = true;
    tape.take(length);
    voice.thinkHeld();
    voice.speech.close();
    desk.state = thinking;
    return 'found';
  };
  /** The end of a thought that no tag has begun: all before it was one. Within a line it is only mentioned. */
  const end = ({ length }: Mark<Tag>): Found => {
    const behind = tape.peek(reach, length);
    if (!tape.isLineStart && !behind.includes('\n')) {
      if (behind.trim() !== '') return undefined;
      if (behind.length < reach && !tape.isEnd) return 'more';
    }
    if (!tape.isLineStart && !/^[ \t\r]*(?:\n|$)/.test(behind)) return undefined;
    tape.take(length);
    if (hasTag) endThought();
    else endAll();
    return 'found';
  };
  /** The same behind an answer, which was a draft if more follows. */
  const endDraft = ({ length }: Mark<Tag>): Found => {
    if (hasTag) return undefined;
    const behind = tape.peek(reach, length);
    if (behind.trim() === '' && behind.length < reach) {
      if (!tape.isEnd) return 'more';
      tape.take(length);
      return 'found';
    }
    if (!/^[ \t\r]*\n/.test(behind)) return undefined;
    tape.take(length);
    endAll();
    return 'found';
  };
  const endAll = (): void => {
    voice.turnTo('open');
    voice.retract();
    forget(findings);
    tape.isLineStart = true;
  };
  /** Prose goes on behind a thought. */
  const endThought = (): void => {
    voice.thinkHeld();
    voice.speech.close();
    if (voice.channel === 'thought' && findings.answer === undefined && !hasActed(findings)) {
      voice.turnTo('open');
    }
    tape.isLineStart = true;
  };
  const thinking: State = () => {
    if (tape.left === 0) return false;
    const tag = tagAt(tape.peek(reach), tape.isEnd);
    if (tag === 'more') return false;
    if (tag?.type === 'unthink') {
      tape.take(tag.length);
      endThought();
      desk.toProse();
      return true;
    }
    voice.speech.say('thinking', tape.take(tape.before(/</g, 1)));
    return true;
  };
  return { begin, end, endDraft };
};
