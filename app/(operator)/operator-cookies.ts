/**
 * The names of the operator's cookies. The prefix binds them to this very host over https; on a host that has no https,
 * which several services may share, the port tells them apart.
 */
export function operatorCookies(publicUrl: string): { session: string; browser: string; secure: boolean } {
  const { protocol, port } = new URL(publicUrl)
  const secure = protocol === 'https:'
  const name = (role: string) => (secure ? `__Host-${role}` : `${role}-${port || '80'}`)
  return { session: name('operator'), browser: name('operator-browser'), secure }
}
