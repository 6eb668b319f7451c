/** Next requires a layout, even without pages. */
export default function Layout({ children }) {
  return children
}
