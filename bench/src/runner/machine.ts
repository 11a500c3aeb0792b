import { availableParallelism, cpus, release, totalmem, type } from 'node:os';

/** Where and when something was measured. */
export interface Machine {
  /** As `2025-01-31`. */
  readonly date: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly system: string;
}

/** Looks at this machine. */
export const machine = (): Machine => ({
  date: new Date().toISOString().slice(0, 10),
  cpu: cpus()[0]?.model.trim() ?? 'unknown CPU',
  cores: availableParallelism(),
  memoryGb: Math.round(totalmem() / 2 ** 30),
  system: `${type()} ${release()}`,
});
