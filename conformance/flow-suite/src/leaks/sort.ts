/** One sort of call in a mix. */
export interface Sort {
  readonly name: string;
  /** How such a call ends. */
  readonly ends: string;
  /** Makes such a call, and resolves to how it has ended. */
  readonly call: (id: string) => Promise<string>;
}
