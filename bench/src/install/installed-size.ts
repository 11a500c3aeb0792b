/** What an install brings. */
export interface InstalledSize {
  readonly bytes: number;
  readonly packages: number;
}
