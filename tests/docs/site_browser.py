"""The site in Chromium, from files alone.

The search finds and opens pages, all fits into 400 pixels, and the colours can be switched.
"""

import os
import pathlib
import shutil
import sys
import tempfile
import time

import site_check

SKIPPED = 77
SECONDS_MAX = 60
SITE = site_check.SITE.with_name("site_browser")
PAGES = (
    "index.html",
    "guide/index.html",
    "guide/http.html",
    "guide/coming_from.html",
    "reference/index.html",
    "reference/http.html",
    "reference/actor/ref.html",
    "reference/http/server.html",
    "reference/runtime/options.html",
    "reference/reflect/enumerators.html",
    "protocols/index.html",
    "protocols/http_musts.html",
    "decisions/turns.html",
    "changelog.html",
    "source/include/troupe/task/when.hpp.html",
)
# What is searched for, and where the first row leads.
SEARCHES = {
    "when_any": "reference/task/when.html#when_any",
    "ref::tell": "reference/actor/ref.html#ref.tell",
    "troupe::http::server": "reference/http/server.html#server",
    "bounded mailboxes": "guide/bounded.html",
}


def selenium():
    """The module, which Debian has for its own Python."""
    sys.path.append("/usr/lib/python3/dist-packages")
    try:
        from selenium import webdriver
    except ImportError:
        print("site: skipped: needs python3-selenium")
        sys.exit(SKIPPED)
    for program in "chromium", "chromedriver":
        if not shutil.which(program):
            print(f"site: skipped: needs {program}")
            sys.exit(SKIPPED)
    return webdriver


class Browser:
    def __init__(self, folder):
        webdriver = selenium()
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        for one in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=1400,900",
            f"--user-data-dir={folder}",
        ):
            options.add_argument(one)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(
            service=Service(shutil.which("chromedriver")), options=options
        )
        self.driver.set_page_load_timeout(SECONDS_MAX)
        self.problems = []

    def open(self, page):
        self.driver.get(f"file://{SITE}/{page}")

    def ask(self, script, *arguments):
        return self.driver.execute_script(f"return {script}", *arguments)

    def check(self, what, holds):
        if not holds:
            self.problems.append(f"{self.driver.current_url}: {what}")

    def wait(self, script, *arguments):
        """Until it holds; what it is at last."""
        return self.wait_by(lambda: self.ask(script, *arguments))

    def wait_by(self, holds):
        deadline = time.monotonic() + SECONDS_MAX
        while not (found := holds()) and time.monotonic() < deadline:
            time.sleep(0.05)  # sleeps: the page tells nobody when it has drawn
        return found

    def set_width(self, width):
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
        )

    def set_scheme(self, name):
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": name}]},
        )


def check_search(browser):
    for words, target in SEARCHES.items():
        browser.open("guide/actors.html")
        field = browser.driver.find_element("css selector", ".search input")
        field.click()
        field.send_keys(words)
        first = browser.wait("document.querySelector('.found a')?.getAttribute('href')")
        browser.check(f"a search for {words} finds first {first}", first == "../" + target)
        field.send_keys("\n")
        browser.check(
            f"the search does not open {target}",
            browser.wait("location.href.endsWith(arguments[0])", target),
        )


def check_width(browser):
    """No page is wider than a small window; what is wide in it can be moved."""
    for width in (400, 800):
        browser.set_width(width)
        for page in PAGES:
            if not (SITE / page).is_file():
                continue
            browser.open(page)
            wide = browser.ask("document.documentElement.scrollWidth")
            browser.check(f"is {wide} pixels wide in a window of {width}", wide <= width)
    browser.open("guide/actors.html")
    browser.driver.find_element("css selector", ".menu").click()
    browser.check(
        "the menu shows no pages",
        browser.ask("document.querySelector('.side').getBoundingClientRect().height") > 100,
    )
    browser.set_width(1400)


def check_colours(browser):
    back = "getComputedStyle(document.body).backgroundColor"
    browser.open("index.html")
    browser.set_scheme("light")
    light = browser.ask(back)
    browser.set_scheme("dark")
    dark = browser.ask(back)
    browser.check(f"is {dark} both in the dark and in the light", light != dark)
    browser.driver.find_element("css selector", ".colours").click()
    browser.check("the switch does not make it light", browser.ask(back) == light)

    def is_kept():
        """A page that is opened at once may end the one before it before the browser has kept the choice."""
        browser.open("index.html")
        if browser.ask(back) != light:
            browser.driver.find_element("css selector", ".colours").click()
        time.sleep(0.2)  # sleeps: the browser tells nobody when it has kept it
        browser.open("guide/actors.html")
        return browser.ask(back) == light

    browser.check("the next page has forgotten the switch", browser.wait_by(is_kept))


def check_files_alone(browser):
    for page in PAGES[:6]:
        if (SITE / page).is_file():
            browser.open(page)
            fetched = browser.ask("performance.getEntriesByType('resource').map((one) => one.name)")
            browser.check(
                f"fetches {fetched}", all(name.startswith(("file:", "data:")) for name in fetched)
            )


def main():
    if not site_check.built(SITE):
        return 1
    with tempfile.TemporaryDirectory(prefix="troupe_site") as folder:
        browser = Browser(pathlib.Path(folder) / "chromium")
        try:
            for check in (check_search, check_width, check_colours, check_files_alone):
                check(browser)
            said = [line["message"] for line in browser.driver.get_log("browser")]
        finally:
            browser.driver.quit()
    problems = browser.problems + said
    print("\n".join(problems) or f"{len(PAGES)} pages are good in Chromium")
    return 1 if problems else 0


if __name__ == "__main__":
    os.environ.setdefault("HOME", "/tmp")
    sys.exit(main())
