/**
 * The places of the layers of Millrace, outermost first. A layer is outside of those with a higher number; one without a place is
 * the innermost, at 100. `priority: layerPlaces.journal - 1` puts a layer just outside of the journal.
 */
export const layerPlaces = {
  /** Outside of all that may wait or answer: `interruptOn`, `output`. */
  outermost: -Number.MAX_VALUE,
  /** The wait in the queue of a session, and all that follows the reply. */
  session: Number.MIN_SAFE_INTEGER,
  memberRuns: 1,
  /** Budgets and usage: they count the steps that a resumed call replays, too. */
  budget: 10,
  /** Layers within only run for steps that are not replayed. */
  journal: 30,
  interrupt: 40,
  sessionTurn: 50,
  /** The event `preCall`. */
  preCall: 52,
  /** Tools and histories that callers add: guards may check them. */
  additions: 54,
  /** Guards and other interceptors of `prepare`. */
  prepare: 55,
  superseded: 56,
  limitCalls: 57,
  recordMemories: 58,
  /** Repairs of the history. */
  repair: 59,
  /** Loads the history, and stores the reply. */
  conversation: 60,
  /** The interceptors of `postCall`: answers of layers within are guarded and remembered. */
  postCall: 75,
  rewriteQuestion: 78,
  retrieve: 80,
  approval: 80,
  recall: 85,
  pinnedTools: 89,
  selectTools: 90,
} as const;
